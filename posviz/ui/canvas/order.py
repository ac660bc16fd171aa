"""The home page's picture: the same words in another order, with and without position.

``bundle`` joins everything the canvas draws into one blob (see ``bundle.py``); ``show`` mounts it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

MAX_TOKENS = 512
_EXACT_CELLS = 50_000  # up to here outputs travel as float64, so that a hovered 2e-16 is not rounded to 0

# Every text of the picture: key -> English template. Translate the values, keep {names}.
LABELS: dict[str, str] = {
    "save": N_("Save"),
    "slide": N_("Slide each word of B to its match"),
    "column_a": N_("A"),
    "column_b": N_("B"),
    "column_difference": N_("A − B"),
    "delta": N_("Δ {value}"),
    "delta_zero": N_("Δ 0 ({value})"),
    "no_partner": N_("no partner"),
    "no_matches": N_("no word in common"),
    "empty_a": N_("sentence A is empty"),
    "empty_b": N_("sentence B is empty"),
    "legend_output": N_("output vector, one cell per dimension, −{vmax} to +{vmax}"),
    "legend_strip": N_("thin strip: A minus the same word in B, on the same scale"),
    "legend_column": N_("middle column: A minus the same word in B, on the same scale"),
    "legend_averaged": N_("each cell is the mean of {count} dimensions"),
    "bars": N_(
        "How far apart the two sentences are after matching words (largest difference of outputs, log axis {low} to {high})"
    ),
    "tip_token": N_("{token} · {position}"),
    "tip_dimension": N_("dimension {dimension}"),
    "tip_averaged": N_("mean of dimensions {first} to {last}"),
    "tip_value_a": N_("A: {value}"),
    "tip_value_b": N_("B: {value}"),
    "tip_difference": N_("A − B: {value}"),
    "tip_tie": N_("{token}: A position {i}, B position {j}"),
    "tip_bar": N_("{label}: {value}"),
    "tip_choose": N_("click to choose this encoding"),
}


class Panel(TypedDict):
    """One of the two panels; ``a`` is (LA, d), ``b`` is (LB, d), ``delta`` one number a match."""

    title: str
    a: np.ndarray
    b: np.ndarray
    delta: Sequence[float | None] | np.ndarray


class Bar(TypedDict):
    """One encoding's difference; ``name`` is what a click sends (the index where it is missing)."""

    label: str
    value: float | None
    selected: bool
    name: NotRequired[str]


def _outputs(name: str, array: np.ndarray, rows: int, d: int | None) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != 2 or array.shape[0] != rows or (d is not None and array.shape[1] != d):
        want = f"({rows}, {'d' if d is None else d})"
        raise ValueError(f"{name} must have shape {want}, got {array.shape}")
    if array.shape[1] < 1:
        raise ValueError(f"{name} must have at least one dimension, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} NaN or infinite cells")
    return array.astype(np.float64 if array.size <= _EXACT_CELLS else np.float32)


def _matches(matches: Sequence[tuple[int, int]], rows_a: int, rows_b: int) -> list[list[int]]:
    pairs = [[int(i), int(j)] for i, j in matches]
    for i, j in pairs:
        if not (0 <= i < rows_a and 0 <= j < rows_b):
            raise ValueError(f"match ({i}, {j}) is outside {rows_a} tokens of A and {rows_b} of B")
    for side, used in (("A", [i for i, _ in pairs]), ("B", [j for _, j in pairs])):
        if len(set(used)) != len(used):
            raise ValueError(f"a token of {side} is matched twice: {sorted(used)}")
    return pairs


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _deltas(name: str, delta: Sequence[float | None] | np.ndarray, count: int) -> list[float | None]:
    values = [_number(v) for v in delta]
    if len(values) != count:
        raise ValueError(f"{name} must have one number for each of the {count} matches, got {len(values)}")
    if any(v is not None and (v < 0 or math.isinf(v)) for v in values):
        raise ValueError(f"{name} must be finite and not negative, got {values}")
    return values


def _bar(index: int, bar: Bar) -> dict[str, Any]:
    value = _number(bar["value"])
    if value is not None and (value < 0 or math.isinf(value)):
        raise ValueError(f"bars[{index}] must have a finite value of 0 or more, got {value}")
    sends = bar.get("name", index)
    return {"label": bar["label"], "value": value, "selected": bool(bar["selected"]), "sends": sends}


def bundle(
    *,
    tokens_a: Sequence[str],
    tokens_b: Sequence[str],
    panels: Sequence[Panel],
    matches: Sequence[tuple[int, int]],
    vmax: float,
    bars: Sequence[Bar],
    floor: float = 1e-9,
    noise: float = 1e-6,
    labels: Mapping[str, str],
    alt: str,
    file: str,
) -> bytes:
    """Check and pack one picture.

    ``tokens_a`` (LA strings) and ``tokens_b`` (LB) may be empty, at most 512 each. ``panels`` are two;
    all four output arrays share ``d``. ``matches`` are (index in A, index in B), each index at most
    once; a ``delta`` of None or NaN leaves that pair untied in that panel. ``vmax`` is the one colour
    scale of outputs and differences. ``floor`` starts the log axis of ``bars``; a difference up to
    ``noise`` is drawn grey, as float noise.
    """
    rows = {"A": len(tokens_a), "B": len(tokens_b)}
    for side, count in rows.items():
        if count > MAX_TOKENS:
            raise ValueError(f"sentence {side} has {count} tokens; at most {MAX_TOKENS} can be drawn")
    if len(panels) != 2:
        raise ValueError(f"panels must be two (without and with position), got {len(panels)}")
    for name, number in (("vmax", vmax), ("floor", floor)):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be finite and above 0, got {number}")
    pairs = _matches(matches, rows["A"], rows["B"])
    arrays: dict[str, np.ndarray] = {}
    heads, d = [], None
    for p, panel in enumerate(panels):
        for side, count in (("a", rows["A"]), ("b", rows["B"])):
            name = f"panels[{p}].{side}"
            arrays[f"{side}{p}"] = _outputs(name, panel[side], count, d)  # type: ignore[literal-required]
            d = arrays[f"{side}{p}"].shape[1]
        delta = _deltas(f"panels[{p}].delta", panel["delta"], len(pairs))
        heads.append({"title": panel["title"], "delta": delta})
    meta = {
        "tokens_a": list(tokens_a),
        "tokens_b": list(tokens_b),
        "d": d,
        "panels": heads,
        "matches": pairs,
        "vmax": float(vmax),
        "bars": [_bar(i, bar) for i, bar in enumerate(bars)],
        "floor": float(floor),
        "noise": float(noise),
        "labels": {**LABELS, **labels},
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_COMPONENT = st.components.v2.component("posviz_order", html="<div></div>", css=style("order"), js=script("order"))


def show(
    data: bytes, *, key: str, height: int | str = "content", on_encoding: Callable[[], None] | None = None
) -> str | int | None:
    """Mount the picture; returns the ``name`` (or index) of the bar clicked last, None before any click.

    ``on_encoding`` runs before the rerun that a click causes (``st.session_state[key].encoding`` is new).
    The room is reserved by order.css before the script has drawn, so the page below does not jump.
    """
    result = _COMPONENT(data=data, key=key, height=height, on_encoding_change=on_encoding or (lambda: None))
    return result.encoding
