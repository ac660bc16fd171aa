"""The Studio's first picture: every head of every layer as a small picture, sorted by what it was measured to do.

``bundle`` joins everything the canvas draws into one blob (see ``bundle.py``); ``show`` mounts it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

SIDES = ("a", "b", "d")

# Every text of the picture: key -> English template. Translate the values, keep {names}.
LABELS: dict[str, str] = {
    "save": N_("Save"),
    "side_a": N_("A"),
    "side_b": N_("B"),
    "side_d": N_("A − B"),
    "side": N_("sentence"),
    "measure": N_("measure"),
    "sorted": N_("strongest first"),
    "own": N_("own scale for each head"),
    "plain": N_("none"),
    "previous": N_("on the token before"),
    "next": N_("on the token after"),
    "first": N_("on the first token"),
    "same": N_("on the token itself"),
    "entropy": N_("spread out (entropy)"),
    "distance": N_("mean distance"),
    "change": N_("changes from A to B"),
    "layer": N_("layer {layer}"),
    "head": N_("head {head}"),
    "heads": N_("head"),
    "title": N_("layer {layer} · head {head}"),
    "hint": N_("Point at a head to see what it does; click to open it."),
    "uniform": N_("the mark: a head that looks at all tokens alike"),
    "scores_of": N_("attention in A, mean over queries"),
    "legend_a": N_("weight in A, 0 to 1"),
    "legend_b": N_("weight in B, 0 to 1"),
    "legend_d": N_("A − B, −1 to +1"),
    "legend_tile": N_("tile: {name}, 0 to {most}"),
    "legend_tile_even": N_("tile: {name}, 0 to {most}; the mark: even attention, {value}"),
    "legend_own": N_("from 0 to the head's largest weight"),
    "legend_axes": N_("down: query, across: key"),
    "legend_pooled": N_("a cell: {count} queries' mean share on {count} keys"),
    "no_matches": N_("no word in common"),
}


class Look(TypedDict):
    """How the grid is looked at: side "a", "b" or "d"; measure a score's name or ""; the rest are switches."""

    side: str
    measure: str
    sorted: bool
    own: bool


class Head(TypedDict):
    """A head: indices from 0."""

    layer: int
    head: int


def bundle(
    *,
    tokens: Mapping[str, Sequence[str]],
    keys: Mapping[str, Sequence[str]] | None = None,
    thumbs: Mapping[str, np.ndarray],
    allowed: Mapping[str, np.ndarray],
    scores: Mapping[str, np.ndarray],
    uniform: Mapping[str, float],
    look: Look,
    chosen: tuple[int, int] = (0, 0),
    labels: Mapping[str, str],
    alt: str,
    file: str,
) -> bytes:
    """Check and pack one picture of N layers x H heads.

    tokens: "a", "b", "d" -> the queries. keys: the same names -> what they look at, where that is another
    sentence. thumbs: "a", "b" (N, H, t, tk) in 0 .. 1 and "d" in -1 .. 1, where t and tk may be smaller than
    the numbers of tokens (see :func:`posviz.survey.pooled`). allowed: the same names -> (t, tk) bool. scores: name -> (N, H), shares 0 .. 1 but for "distance" (tokens);
    NaN where there is none. uniform: name -> what even attention would score. chosen: (layer, head) shown large
    until somebody points at another.
    """
    shape, along = np.shape(thumbs["a"])[:2], keys or tokens
    arrays: dict[str, np.ndarray] = {}
    for side in SIDES:
        cells = np.asarray(thumbs[side])
        if cells.ndim != 4 or cells.shape[:2] != shape:
            raise ValueError(f"thumbs[{side!r}] must have shape (*{shape}, t, tk), got {cells.shape}")
        low = -1.0 if side == "d" else 0.0
        if not np.isfinite(cells).all() or cells.min(initial=0) < low - 1e-5 or cells.max(initial=0) > 1 + 1e-5:
            raise ValueError(f"thumbs[{side!r}] must be finite and lie between {low:g} and 1")
        for cells_along, words in zip(cells.shape[2:], (tokens[side], along[side]), strict=True):
            if cells_along > max(1, len(words)):
                raise ValueError(f"thumbs[{side!r}] has {cells_along} cells along {len(words)} tokens")
        if np.shape(allowed[side]) != cells.shape[2:]:
            raise ValueError(f"allowed[{side!r}] must have shape {cells.shape[2:]}, got {np.shape(allowed[side])}")
        # Signed: 127 is an exact zero, one step is 1/127.
        scaled = (cells + 1) * 127 if side == "d" else cells * 255
        arrays[f"{side}.thumbs"] = np.clip(np.rint(scaled), 0, 254 if side == "d" else 255).astype(np.uint8)
        if not np.all(allowed[side]):
            arrays[f"{side}.allowed"] = np.asarray(allowed[side]).astype(np.uint8)
    if not set(scores) <= set(LABELS):
        raise ValueError(f"scores {sorted(set(scores) - set(LABELS))} have no text in LABELS")
    for name, values in scores.items():
        if np.shape(values) != shape:
            raise ValueError(f"scores[{name!r}] must have shape {shape}, got {np.shape(values)}")
        arrays[f"score.{name}"] = np.asarray(values, np.float32)
    longest = max(1, len(tokens["a"]) - 1)
    measures: list[dict[str, Any]] = [
        {
            "name": name,
            "most": longest if name == "distance" else 1,
            "uniform": float(uniform[name]) if np.isfinite(uniform.get(name, np.nan)) else None,
        }
        for name in scores
    ]
    if look["side"] not in SIDES or look["measure"] not in ("", *scores):
        raise ValueError(f"look {look} names no side or no score")
    if not (0 <= chosen[0] < shape[0] and 0 <= chosen[1] < shape[1]):
        raise ValueError(f"chosen {chosen} is outside {shape[0]} layers of {shape[1]} heads")
    meta = {
        "layers": shape[0],
        "heads": shape[1],
        "tokens": {side: list(tokens[side]) for side in SIDES},
        "keys": {side: list(along[side]) for side in SIDES},
        "measures": measures,
        "look": dict(look),
        "chosen": {"n": int(chosen[0]), "h": int(chosen[1])},
        "labels": {**LABELS, **labels},
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_COMPONENT = st.components.v2.component("posviz_grid", html="<div></div>", css=style("grid"), js=script("grid"))


def show(
    data: bytes,
    *,
    key: str,
    on_look: Callable[[], None] | None = None,
    on_open: Callable[[], None] | None = None,
) -> None:
    """Mount the picture. ``st.session_state[key]`` has ``look`` (a :class:`Look`) when ``on_look`` runs, and
    ``open`` (a :class:`Head`) when somebody clicked a head."""

    def nothing() -> None: ...

    _COMPONENT(
        data=data, key=key, height="content", on_look_change=on_look or nothing, on_open_change=on_open or nothing
    )
