"""Which angles each pair met in training and which are new, as arcs: a picture of the RoPE workbench (``arcs.js``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

LABELS: dict[str, str] = {
    "save": N_("Save"),
    "seen": N_("met in training"),
    "unseen": N_("{side}: new"),
    "ring": N_("ring {side}: {name}"),
    "pair": N_("pair {pair}"),
    "wavelength": N_("{side}: wavelength {before} → {after} positions"),
    "turns": N_("{side}: {trained} turns in training, {wanted} now"),
    "rests": N_("{side}: does not turn"),
    "hint": N_("← →: step · Esc: let go"),
}

MAX_PAIRS = 4096


@dataclass(frozen=True, eq=False)
class Ring:
    """One model: its name, (pairs,) turns in training and now, (pairs,) wavelengths before and after scaling.

    A pair that rests has infinite wavelengths.
    """

    name: str
    trained: np.ndarray
    wanted: np.ndarray
    before: np.ndarray
    after: np.ndarray


def bundle(
    rings: Sequence[Ring],
    *,
    labels: Mapping[str, str] = LABELS,
    height: int = 430,
    alt: str = "",
    file: str = "posviz-angles",
) -> bytes:
    """The picture's data; one or two rings, the outer one first."""
    if not 1 <= len(rings) <= 2:
        raise ValueError(f"one or two rings, got {len(rings)}")
    missing = [key for key in LABELS if key not in labels]
    if missing:
        raise ValueError(f"labels lacks {', '.join(missing)}")
    arrays = {}
    for i, ring in enumerate(rings):
        sizes = {len(getattr(ring, name)) for name in ("trained", "wanted", "before", "after")}
        if len(sizes) != 1 or not 1 <= max(sizes) <= MAX_PAIRS:
            raise ValueError(f"{ring.name!r}: one number for each of 1 to {MAX_PAIRS} pairs, got {sorted(sizes)}")
        for name in ("trained", "wanted", "before", "after"):
            arrays[f"{name}{i}"] = np.asarray(getattr(ring, name), np.float64)
    meta = {
        "rings": [ring.name for ring in rings],
        "labels": {key: labels[key] for key in LABELS},
        "height": height,
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_mount = st.components.v2.component(
    "posviz_arcs",
    html='<div class="reserve"></div>\n',
    css=style("arcs"),
    js=script("arcs"),
)


def show(data: bytes, *, key: str) -> None:
    """Mount the picture."""
    _mount(data=data, key=key)
