"""The Attention page's picture: every head's weights for A, for B, and their difference.

``bundle`` joins everything the canvas draws into one blob (see ``bundle.py``); ``show`` mounts it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

MAX_TOKENS = 512
MAX_CELLS = 8_000_000  # heads x queries x keys of one array
EXACT_CELLS = 200_000  # above this, weights travel as bytes and parts of scores as 16-bit steps
_SCORES = "scores"  # the key of the whole score among the parts

# Every text of the picture: key -> English template. Translate the values, keep {names}.
# A part of the score called x needs a text part_x.
LABELS: dict[str, str] = {
    "save": N_("Save"),
    "back": N_("Back to all heads"),
    "previous": N_("Previous head"),
    "next": N_("Next head"),
    "head": N_("Head {head}"),
    "row_a": N_("A"),
    "row_b": N_("B"),
    "row_d": N_("A − B"),
    "caption_d": N_("matched words"),
    "cell_title": N_("{head} · query {query} → key {key}"),
    "token": N_("{token}·{position}"),
    "hint": N_(
        "Point at a cell to see where its weight comes from. Click to pin it; click a head's name to open the head."
    ),
    "part_content": N_("content"),
    "part_bias": N_("bias"),
    "part_rotation": N_("rotation"),
    "part_content_content": N_("content · content"),
    "part_content_position": N_("content · position"),
    "part_position_content": N_("position · content"),
    "part_position_position": N_("position · position"),
    "score": N_("score / {scale}"),
    "softmax": N_("softmax → weight"),
    "weight": N_("weight"),
    "weight_a": N_("weight in A"),
    "weight_b": N_("weight in B"),
    "difference": N_("A − B"),
    "precise": N_("{value} ± {error}"),
    "masked": N_("masked: this query may not look at this key"),
    "row_weights": N_("this query's weights over all keys"),
    "pinned": N_("pinned; click the cell again to release it"),
    "averaged": N_("the picture shows the mean of {count}×{count} cells here: {value}"),
    "legend_a": N_("weight in A, 0 to 1"),
    "legend_b": N_("weight in B, 0 to 1"),
    "legend_d": N_("A − B, −1 to +1"),
    "legend_masked": N_("masked"),
    "legend_axes": N_("down: query, across: key"),
    "legend_averaged": N_("drawn as means of {count}×{count} cells"),
    "legend_parts": N_("part of the score, −{vmax} to +{vmax}"),
    "profile": N_("mean weight by distance (key − query)"),
    "bias_profile": N_("bias by distance (key − query)"),
    "parts_title": N_("parts of the score"),
    "tip_distance": N_("distance {distance}"),
    "tip_mean": N_("{name}: {value} (mean of {count} cells)"),
    "tip_value": N_("{name}: {value}"),
    "empty_a": N_("sentence A is empty"),
    "empty_b": N_("sentence B is empty"),
    "no_matches": N_("no word in common"),
}


class Cell(TypedDict):
    """A cell: ``sentence`` is "a", "b" or "d" (the difference), the rest are indices."""

    sentence: str
    head: int
    row: int
    col: int


def _cube(name: str, array: np.ndarray, heads: int | None, rows: int, columns: int, low: float) -> np.ndarray:
    array = np.asarray(array)
    want = f"({'heads' if heads is None else heads}, {rows}, {columns})"
    if array.ndim != 3 or array.shape[1:] != (rows, columns) or heads not in (None, array.shape[0]):
        raise ValueError(f"{name} must have shape {want}, got {array.shape}")
    if array.shape[0] < 1:
        raise ValueError(f"{name} must have at least one head, got shape {array.shape}")
    if max(rows, columns) > MAX_TOKENS:
        raise ValueError(f"{name} has {max(rows, columns)} tokens; at most {MAX_TOKENS} can be drawn")
    if array.size > MAX_CELLS:
        raise ValueError(f"{name} has {array.size} cells; at most {MAX_CELLS} can be drawn")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} NaN or infinite cells")
    if array.size and (array.min() < low - 1e-5 or array.max() > 1 + 1e-5):
        raise ValueError(f"{name} must lie between {low:g} and 1, got {array.min():g} to {array.max():g}")
    return array


def _mask(name: str, allowed: np.ndarray | None, cube: np.ndarray) -> np.ndarray:
    if allowed is None:
        return np.ones(cube.shape[1:], bool)
    allowed = np.asarray(allowed)
    if allowed.dtype != np.bool_ or allowed.shape != cube.shape[1:]:
        raise ValueError(f"{name} must be booleans of shape {cube.shape[1:]}, got {allowed.dtype} {allowed.shape}")
    if np.abs(cube[:, ~allowed]).max(initial=0) > 1e-5:
        raise ValueError(f"{name} masks cells whose weight is not 0, up to {np.abs(cube[:, ~allowed]).max():g}")
    return allowed


def _bytes(cube: np.ndarray, signed: bool) -> np.ndarray:
    # Signed: 127 is an exact zero, one step is 1/127.
    scaled = (cube + 1) * 127 if signed else cube * 255
    return np.clip(np.rint(scaled), 0, 254 if signed else 255).astype(np.uint8)


def _parts(
    side: str,
    parts: Mapping[str, np.ndarray],
    cube: np.ndarray,
    allowed: np.ndarray,
    labels: Mapping[str, str],
    arrays: dict[str, np.ndarray],
) -> list[dict[str, Any]]:
    """Check the parts of one sentence, add them to ``arrays``, return what JavaScript must know."""
    entries, total = [], np.zeros(cube.shape, np.float64)
    for name, part in parts.items():
        part = np.asarray(part)
        if part.shape != cube.shape:
            raise ValueError(f"parts_{side}[{name!r}] must have shape {cube.shape}, got {part.shape}")
        if name != _SCORES and f"part_{name}" not in labels:
            raise ValueError(f"parts_{side}[{name!r}] has no text: labels needs 'part_{name}'")
        part = np.where(allowed, part, 0)  # masked scores are minus infinity and are not shown
        if not np.isfinite(part).all():
            raise ValueError(f"parts_{side}[{name!r}] must be finite where the mask allows")
        if name != _SCORES:
            total += part
        step = 0.0
        if cube.size > EXACT_CELLS:
            step = float(np.abs(part).max()) / 32767 or 1.0
            arrays[f"{side}.{name}"] = np.rint(part / step).astype(np.int16)
        else:
            arrays[f"{side}.{name}"] = part.astype(np.float32)
        entries.append({"name": name, "step": step})
    if _SCORES in parts and len(parts) > 1:
        scores = np.where(allowed, np.asarray(parts[_SCORES]), 0)
        error = np.abs(scores - total) / (1 + np.abs(scores))
        if error.max(initial=0) > 1e-3:
            raise ValueError(f"the parts of parts_{side} do not add up to its scores, off by {error.max():g}")
    return entries


def _pairs(
    name: str, pairs: Sequence[tuple[int, int]] | None, tokens: Mapping[str, list[str]]
) -> list[list[int]] | None:
    if pairs is None:
        return None
    count_d, count_a, count_b = (len(tokens.get(side, ())) for side in "dab")
    found = [[int(i), int(j)] for i, j in pairs]
    if len(found) != count_d:
        raise ValueError(f"{name} must be one for each of the {count_d} tokens of the difference, got {len(found)}")
    for i, j in found:
        if not (0 <= i < count_a and 0 <= j < count_b):
            raise ValueError(f"{name} hold ({i}, {j}), outside {count_a} tokens of A and {count_b} of B")
    return found


def _selected(selected: Cell | None, cubes: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
    if selected is None:
        return None
    sentence, head, row, col = (selected[k] for k in ("sentence", "head", "row", "col"))  # type: ignore[literal-required]
    shape = cubes[sentence].shape if sentence in cubes else (0, 0, 0)
    if not all(0 <= place < size for place, size in zip((head, row, col), shape, strict=True)):
        sizes = {side: cube.shape for side, cube in cubes.items()}
        raise ValueError(f"selected {selected} is outside the heads, queries and keys {sizes}")
    return {"sentence": sentence, "head": int(head), "row": int(row), "col": int(col)}


def _bias(bias: tuple[np.ndarray, np.ndarray] | None, heads: int, arrays: dict[str, np.ndarray]) -> None:
    if bias is None:
        return
    distances, values = (np.asarray(x) for x in bias)
    if distances.ndim != 1 or values.shape != (heads, len(distances)):
        raise ValueError(
            f"bias_by_distance must be distances (D,) and biases ({heads}, D), got {distances.shape} and {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("bias_by_distance must be finite; leave masked distances out")
    order = np.argsort(distances)
    arrays["bias_x"] = distances[order].astype(np.int32)
    arrays["bias_y"] = values[:, order].astype(np.float32)


def bundle(
    *,
    tokens_a: Sequence[str],
    weights_a: np.ndarray,
    keys_a: Sequence[str] | None = None,
    tokens_b: Sequence[str] | None = None,
    weights_b: np.ndarray | None = None,
    keys_b: Sequence[str] | None = None,
    diff_tokens: Sequence[str] | None = None,
    difference: np.ndarray | None = None,
    diff_keys: Sequence[str] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    key_pairs: Sequence[tuple[int, int]] | None = None,
    allowed_a: np.ndarray | None = None,
    allowed_b: np.ndarray | None = None,
    allowed_d: np.ndarray | None = None,
    parts_a: Mapping[str, np.ndarray] | None = None,
    parts_b: Mapping[str, np.ndarray] | None = None,
    scale: str = "√d",
    bias_by_distance: tuple[np.ndarray, np.ndarray] | None = None,
    head_labels: Sequence[str] | None = None,
    columns: int | None = None,
    captions: Mapping[str, str] | None = None,
    selected: Cell | None = None,
    opened: bool = False,
    labels: Mapping[str, str],
    alt: str,
    file: str,
) -> bytes:
    """Check and pack one picture.

    ``weights_a`` (H, LA, LA) and ``weights_b`` (H, LB, LB) are after softmax, rows queries;
    ``difference`` (H, M, M) is A - B over the matched tokens ``diff_tokens``, and ``pairs`` says for
    each where it stands in A and in B. With ``keys_*`` and ``diff_keys``, as in cross-attention, matrices are
    (H, L, Lk), and ``key_pairs`` match the keys. ``allowed_*`` are (L, L) booleans, False where masked.
    ``parts_*`` map a name to a (H, L, L) share of the score, already divided by ``scale``, and may
    hold the whole under "scores"; without it the score is their sum. ``bias_by_distance`` is
    (D,) distances key - query and (H, D) biases. ``columns`` keeps that many heads (or a divisor of
    it) in a line, e.g. the heads of a layer. ``captions`` are short lines under "a", "b", "d".
    ``opened``: the first head is shown large, and there is no way back to a grid.
    """
    texts = {**LABELS, **labels}
    given = {
        "a": ("weights_a", tokens_a, keys_a, weights_a, allowed_a, 0.0),
        "b": ("weights_b", tokens_b, keys_b, weights_b, allowed_b, 0.0),
        "d": ("difference", diff_tokens, diff_keys, difference, allowed_d, -1.0),
    }
    cubes, masks, tokens, keys = {}, {}, {}, {}
    heads: int | None = None
    for side, (name, words, key_words, array, allowed, low) in given.items():
        if array is None:
            if any(part is not None for part in (words, key_words, allowed)):
                raise ValueError(f"{name} is missing, but its tokens or mask were given")
            continue
        if words is None:
            raise ValueError(f"{name} needs its tokens")
        if (key_words is None) != (keys_a is None):
            raise ValueError(f"{name} and weights_a must both have keys of their own, or both none")
        tokens[side], keys[side] = list(words), list(words if key_words is None else key_words)
        cubes[side] = _cube(name, array, heads, len(tokens[side]), len(keys[side]), low)
        heads = cubes[side].shape[0]
        masks[side] = _mask(f"allowed_{side}", allowed, cubes[side])
    assert heads is not None  # weights_a is required
    rounded = max(cube.size for cube in cubes.values()) > EXACT_CELLS
    arrays: dict[str, np.ndarray] = {}
    for side, cube in cubes.items():
        arrays[f"{side}.weights"] = _bytes(cube, side == "d") if rounded else cube.astype(np.float32)
        if not masks[side].all():
            arrays[f"{side}.allowed"] = masks[side].astype(np.uint8)
    parts = {}
    for side, mapping in (("a", parts_a), ("b", parts_b)):
        if mapping and side not in cubes:
            raise ValueError(f"parts_{side} were given without weights_{side}")
        parts[side] = _parts(side, mapping, cubes[side], masks[side], texts, arrays) if mapping else []
    if head_labels is not None and len(head_labels) != heads:
        raise ValueError(f"head_labels must be {heads}, got {len(head_labels)}")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be 1 or more, got {columns}")
    cross = keys_a is not None
    if cross and bias_by_distance is not None:
        raise ValueError("bias_by_distance needs queries and keys of one sentence, got keys of their own")
    if key_pairs is not None and not cross:
        raise ValueError("key_pairs need keys_a; without them the keys are the queries, matched by pairs")
    _bias(bias_by_distance, heads, arrays)
    meta = {
        "heads": heads,
        "tokens": tokens,
        "keys": keys,
        "cross": cross,
        "rounded": rounded,
        "parts": parts,
        "pairs": _pairs("pairs", pairs, tokens),
        "key_pairs": _pairs("key_pairs", key_pairs if cross else pairs, keys),
        "scale": scale,
        "head_labels": list(head_labels)
        if head_labels
        else [texts["head"].replace("{head}", str(h)) for h in range(heads)],
        "columns": columns,
        "opened": opened,
        "captions": {"d": texts["caption_d"], **(captions or {})},
        "selected": _selected(selected, cubes),
        "labels": texts,
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_COMPONENT = st.components.v2.component("posviz_heads", html="<div></div>", css=style("heads"), js=script("heads"))


def show(
    data: bytes, *, key: str, height: int | str = "content", on_cell: Callable[[], None] | None = None
) -> Cell | None:
    """Mount the picture; returns the pinned cell, None when nothing is pinned.

    ``on_cell`` runs before the rerun that a click causes (``st.session_state[key].cell`` is new).
    The room is reserved by heads.css before the script has drawn, so the page below does not jump.
    """
    result = _COMPONENT(data=data, key=key, height=height, on_cell_change=on_cell or (lambda: None))
    return result.cell
