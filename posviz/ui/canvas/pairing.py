"""The two pairings with the permutation between them: a picture of the Rotation page (``pairing.js``)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

LABELS: dict[str, str] = {
    "play": N_("Play"),
    "pause": N_("Pause"),
    "save": N_("Save"),
    "way": N_("from one order to the other"),
    "interleaved": N_("interleaved (GPT-J)"),
    "half": N_("half (Llama)"),
    "goes": N_("dimension {a} → {to_a}, dimension {b} → {to_b}"),
    "rot": N_("{name}: x above, rot(x) below"),
    "chosen": N_("pair {pair}: dimensions {a} and {b}, turned:"),
    "keys": N_("space: play · ← →: to and fro · ↑ ↓: pair"),
}


@dataclass(frozen=True, eq=False)
class Order:
    """One pairing: (pairs, 2) its dimensions, and a vector (d,) in its order before and after it is turned."""

    dims: np.ndarray
    x: np.ndarray
    y: np.ndarray


def bundle(
    interleaved: Order,
    half: Order,
    *,
    permutation: np.ndarray,
    pair: int,
    labels: Mapping[str, str] = LABELS,
    alt: str = "",
    file: str = "posviz-pairing",
) -> bytes:
    """The picture's data. permutation (2 pairs,): which dimension of the interleaved order comes at each place of half's."""
    if interleaved.dims.shape != half.dims.shape or interleaved.dims.shape != (len(permutation) // 2, 2):
        raise ValueError(f"{interleaved.dims.shape} and {half.dims.shape} do not fit {len(permutation)} dimensions")
    if len({len(array) for order in (interleaved, half) for array in (order.x, order.y)}) != 1:
        raise ValueError("x and y must all be equally long")
    if not 0 <= pair < len(interleaved.dims):
        raise ValueError(f"pair must be from 0 to {len(interleaved.dims) - 1}, got {pair}")
    missing = [name for name in LABELS if name not in labels]
    if missing:
        raise ValueError(f"labels lacks {', '.join(missing)}")
    arrays = {"x": np.asarray(interleaved.x, np.float64), "permutation": np.asarray(permutation, np.int32)}
    for name, order in (("interleaved", interleaved), ("half", half)):
        arrays[name] = np.asarray(order.dims, np.int32).ravel()
        arrays |= {f"x_{name}": np.asarray(order.x, np.float64), f"y_{name}": np.asarray(order.y, np.float64)}
    meta = {"pair": int(pair), "labels": {name: labels[name] for name in LABELS}, "alt": alt, "file": file}
    return pack(meta, arrays)


_mount = st.components.v2.component(
    "posviz_pairing",
    html='<div class="reserve"></div>\n',
    css=style("pairing"),
    js=script("pairing"),
)


def show(data: bytes, *, key: str, on_change: Callable[[], None] = lambda: None) -> None:
    """Mount the picture; ``st.session_state[key].state`` is {"pair"} after a change."""
    _mount(data=data, key=key, on_state_change=on_change)
