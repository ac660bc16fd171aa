"""The link view of one head: two columns of tokens and a line for every weight, for A and beside it B.

``bundle`` joins everything the canvas draws into one blob (see ``bundle.py``); ``show`` mounts it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

MAX_TOKENS = 512
EXACT_CELLS = 200_000  # above this, weights travel as bytes
MAX_THRESHOLD = 0.5
TOP_K = (0, 1, 3, 5)  # lines of a query that are drawn; 0 draws them all
_ERROR = 1e-5  # rounding of a float32 softmax

# Every text of the picture: key -> English template. Translate the values, keep {names}.
LABELS: dict[str, str] = {
    "save": N_("Save"),
    "row_a": N_("A"),
    "row_b": N_("B"),
    "queries": N_("queries"),
    "keys": N_("keys"),
    "token": N_("{token}·{position}"),
    "threshold": N_("weights from {value} on"),
    "top_k": N_("lines of a query"),
    "top_all": N_("all"),
    "top_count": N_("top {count}"),
    "clear": N_("Show all lines"),
    "seen": N_("tokens {first}–{last} of {count}"),
    "left_out": N_("the {drawn} strongest of {count} lines are drawn"),
    "lines": N_("{count} lines"),
    "of_query": N_("weights of {token}"),
    "of_queries": N_("mean weights of {count} queries"),
    "to_key": N_("weights to {token}"),
    "to_keys": N_("weights to {count} keys, added up"),
    "no_match": N_("{token} has no match here"),
    "masked": N_("– masked"),
    "said": N_("{token}: {list}"),
    "said_weight": N_("{token} {weight}"),
    "legend_a": N_("weight in A: a line as wide as here is 1"),
    "legend_b": N_("weight in B: a line as wide as here is 1"),
    "legend_rounded": N_("weights are rounded to 1/255"),
    "hint": N_(
        "Point at a token to see its lines alone; click to keep it, several if you like; "
        "arrow keys and Enter do the same, Escape lets go."
    ),
    "empty": N_("the sentence is empty"),
}


class Look(TypedDict):
    """What is shown: chosen queries (``a``, ``b``) and keys (``a_keys``, ``b_keys``) are indices of tokens."""

    threshold: float
    top_k: int
    a: list[int]
    b: list[int]
    a_keys: list[int]
    b_keys: list[int]


def _tokens(name: str, tokens: Sequence[str]) -> list[str]:
    if len(tokens) > MAX_TOKENS:
        raise ValueError(f"{name} has {len(tokens)} tokens; at most {MAX_TOKENS} can be drawn")
    return list(tokens)


def _weights(side: str, weights: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    weights = np.asarray(weights)
    if weights.shape != shape:
        raise ValueError(f"weights_{side} must have shape {shape}, got {weights.shape}")
    if not np.isfinite(weights).all():
        bad = np.count_nonzero(~np.isfinite(weights))
        raise ValueError(f"weights_{side} must be finite, got {bad} NaN or infinite cells")
    if weights.size and (weights.min() < -_ERROR or weights.max() > 1 + _ERROR):
        raise ValueError(f"weights_{side} must lie between 0 and 1, got {weights.min():g} to {weights.max():g}")
    return weights.clip(0, 1)


def _allowed(side: str, allowed: np.ndarray | None, weights: np.ndarray) -> np.ndarray | None:
    if allowed is None:
        return None
    allowed = np.asarray(allowed)
    if allowed.dtype != np.bool_ or allowed.shape != weights.shape:
        raise ValueError(
            f"allowed_{side} must be booleans of shape {weights.shape}, got {allowed.dtype} {allowed.shape}"
        )
    most = weights[~allowed].max(initial=0)
    if most > _ERROR:
        raise ValueError(f"allowed_{side} masks cells whose weight is not 0, up to {most:g}")
    return None if allowed.all() else allowed


def _pairs(
    name: str, pairs: Sequence[tuple[int, int]] | None, count_a: int, count_b: int | None
) -> list[list[int]] | None:
    if pairs is None:
        return None
    if count_b is None:
        raise ValueError(f"{name} were given without weights_b")
    found = [[int(i), int(j)] for i, j in pairs]
    for i, j in found:
        if not (0 <= i < count_a and 0 <= j < count_b):
            raise ValueError(f"{name} hold ({i}, {j}), outside {count_a} tokens of A and {count_b} of B")
    if len({i for i, _ in found}) < len(found) or len({j for _, j in found}) < len(found):
        raise ValueError(f"{name} match a token twice")
    return found


def _selected(selected: Mapping[str, Sequence[int]] | None, sizes: Mapping[str, int]) -> dict[str, list[int]]:
    given = selected or {}
    unknown = set(given) - {"a", "b", "a_keys", "b_keys"}
    if unknown:
        raise ValueError(f"selected may hold a, b, a_keys and b_keys, got {', '.join(sorted(unknown))}")
    found = {}
    for part in ("a", "b", "a_keys", "b_keys"):
        chosen = sorted({int(i) for i in given.get(part, ())})
        size = sizes.get(part, 0)
        if chosen and (chosen[0] < 0 or chosen[-1] >= size):
            raise ValueError(f"selected[{part!r}] must be from 0 to {size - 1}, got {chosen}")
        found[part] = chosen
    return found


def bundle(
    *,
    tokens_a: Sequence[str],
    weights_a: np.ndarray,
    allowed_a: np.ndarray | None = None,
    key_tokens_a: Sequence[str] | None = None,
    tokens_b: Sequence[str] | None = None,
    weights_b: np.ndarray | None = None,
    allowed_b: np.ndarray | None = None,
    key_tokens_b: Sequence[str] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    key_pairs: Sequence[tuple[int, int]] | None = None,
    title: str = "",
    selected: Mapping[str, Sequence[int]] | None = None,
    threshold: float = 0.0,
    top_k: int = 0,
    labels: Mapping[str, str],
    alt: str,
    file: str,
) -> bytes:
    """Check and pack one picture.

    ``weights_*`` (L, L) is one head after softmax, rows queries; with ``key_tokens_*`` (K,), as in
    cross-attention, (L, K). ``allowed_*`` is False where masked. ``pairs`` match queries (i of A, j of B)
    and, without ``key_tokens_*``, keys; ``key_pairs`` match the keys of a cross-attention. ``selected``,
    ``threshold`` and ``top_k`` as in :class:`Look`. Raises ValueError.
    """
    given = {"a": (tokens_a, key_tokens_a, weights_a, allowed_a)}
    if weights_b is not None:
        if tokens_b is None:
            raise ValueError("weights_b needs its tokens")
        given["b"] = (tokens_b, key_tokens_b, weights_b, allowed_b)
    elif any(part is not None for part in (tokens_b, key_tokens_b, allowed_b)):
        raise ValueError("weights_b is missing, but its tokens or mask were given")
    if not 0 <= threshold <= MAX_THRESHOLD:
        raise ValueError(f"threshold must be from 0 to {MAX_THRESHOLD:g}, got {threshold:g}")
    if top_k not in TOP_K:
        raise ValueError(f"top_k must be one of {', '.join(map(str, TOP_K))}, got {top_k}")
    sides: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    arrays: dict[str, np.ndarray] = {}
    for side, (words, key_words, array, mask) in given.items():
        queries = _tokens(f"tokens_{side}", words)
        keys = queries if key_words is None else _tokens(f"key_tokens_{side}", key_words)
        weights = _weights(side, array, (len(queries), len(keys)))
        rounded = weights.size > EXACT_CELLS
        arrays[f"{side}.weights"] = np.rint(weights * 255).astype(np.uint8) if rounded else weights.astype(np.float32)
        allowed = _allowed(side, mask, weights)
        if allowed is not None:
            arrays[f"{side}.allowed"] = np.packbits(allowed)  # a bit a cell, row by row
        sides[side] = {"queries": queries, "keys": keys, "rounded": rounded, "cross": key_words is not None}
        sizes |= {side: len(queries), f"{side}_keys": len(keys)}
    cross = any(side["cross"] for side in sides.values())
    if key_pairs is not None and not cross:
        raise ValueError("key_pairs need key_tokens; without them the keys are the queries, matched by pairs")
    matched = _pairs("pairs", pairs, sizes["a"], sizes.get("b"))
    meta = {
        "sides": sides,
        "pairs": matched,
        "key_pairs": _pairs("key_pairs", key_pairs, sizes["a_keys"], sizes.get("b_keys")) if cross else matched,
        "title": title,
        "look": {"threshold": float(threshold), "top_k": int(top_k), **_selected(selected, sizes)},
        "top_k": list(TOP_K),
        "max_threshold": MAX_THRESHOLD,
        "labels": {**LABELS, **labels},
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_COMPONENT = st.components.v2.component("posviz_links", html="<div></div>", css=style("links"), js=script("links"))


def show(
    data: bytes, *, key: str, height: int | str = "content", on_look: Callable[[], None] | None = None
) -> Look | None:
    """Mount the picture; returns what was last chosen in it, None before that.

    ``on_look`` runs before the rerun that a click causes (``st.session_state[key].look`` is new).
    The room is reserved by links.css before the script has drawn, so the page below does not jump.
    """
    result = _COMPONENT(data=data, key=key, height=height, on_look_change=on_look or (lambda: None))
    return result.look
