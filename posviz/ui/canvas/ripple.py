"""The picture of the Similarity page: curves over distance, and the matrix whose row they follow.

Left (above, when narrow): similarity against the distance k from the chosen position p, one curve
per encoding with its spread, the row p of the selected encoding's matrix drawn bold, and under the
axis one strip per curve with a mark at every distance where it rises. Right (below): the position x
position matrix; the row under the pointer is the bold curve, followed in the browser.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

Rgb = tuple[int, int, int]

# Encodings keep their colour by index: seven hues that are neither A's blue, B's orange, the
# position teal nor the content grey, each at least 4.5:1 on its background. ripple.js gives index i
# one of four dash patterns as well, so that 28 encodings differ and none is told apart by hue
# alone.
CURVE_COLOURS: tuple[tuple[Rgb, Rgb], ...] = (  # (light theme, dark theme)
    ((74, 43, 110), (196, 180, 255)),
    ((194, 24, 91), (255, 111, 156)),
    ((20, 121, 168), (92, 200, 242)),
    ((125, 107, 0), (224, 203, 74)),
    ((20, 83, 45), (120, 190, 100)),
    ((160, 65, 196), (224, 130, 245)),
    ((107, 52, 16), (214, 150, 110)),
)

LABELS: dict[str, str] = {
    "save": N_("Save"),
    "dot": N_("dot product"),
    "cosine": N_("cosine similarity"),
    "scaled": N_("dot product / (d/2)"),
    "bias": N_("bias added to the score"),
    "distance": N_("distance k from position p"),
    "range": N_("distances shown"),
    "range_option": N_("distances up to {k}"),
    "both": N_("both sides of p"),
    "log": N_("log distance"),
    "value": N_("sim({p}, {j}) = {value}"),
    "value_bias": N_("bias({p}, {j}) = {value}"),
    "rises": N_("rises at {list} ({count} of {total})"),
    "rises_count": N_("{count} rises in {total} steps"),
    "never": N_("never rises"),
    "separator": N_(", "),
    "row": N_("position p"),
    "column": N_("position p + k"),
    "averaged": N_("averaged {n} × {n}"),
    "exact": N_("cell by cell"),
    "tip_row": N_("row p = {p}"),
    "tip_note": N_("mean ± spread over all positions"),
    "hint": N_("click: keep this row, Esc: let go"),
}


def _finite(name: str, array: npt.ArrayLike) -> npt.NDArray[np.float64]:
    values = np.asarray(array, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be one finite number per distance, got shape {values.shape}")
    return values


@dataclass(frozen=True, eq=False)
class Curve:
    """Similarity over distance for one encoding.

    ``mean`` (K,) float64 is the mean over p of sim(p, p + k) for k = 0 .. K-1; it is drawn on both
    sides of p, because a similarity depends on the pair only. ``two_sided`` curves, where the
    direction counts, carry k = -(K-1) .. K-1, shape (2K-1,). ``spread``, the same shape, is the
    standard deviation over p: zero where only the distance counts. ``rises`` (n,) int32 are the
    distances at which the curve rises going away from p. ``axis`` "right" is for a bias added to
    the score: other units, drawn dashed. ``colour`` is the encoding's index (see ``CURVE_COLOURS``)
    or an RGB triple for both themes.
    """

    label: str
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    rises: npt.NDArray[np.int32]
    axis: Literal["left", "right"] = "left"
    colour: int | Rgb = 0
    two_sided: bool = False

    def __post_init__(self) -> None:
        mean, spread = _finite("mean", self.mean), _finite("spread", self.spread)
        if len(mean) < 1 or mean.shape != spread.shape or (spread < 0).any():
            raise ValueError(
                f"spread of {self.label!r} must be zero or positive and as long as mean,"
                f" got {spread.shape} and {mean.shape}"
            )
        if self.two_sided and len(mean) % 2 == 0:
            raise ValueError(f"a two-sided curve has 2K-1 distances, an odd number, got {len(mean)} for {self.label!r}")
        if self.axis not in ("left", "right"):
            raise ValueError(f"axis must be 'left' or 'right', got {self.axis!r}")
        first, last = (-(len(mean) // 2), len(mean) // 2) if self.two_sided else (0, len(mean) - 1)
        rises = np.asarray(self.rises)
        if rises.ndim != 1 or (rises.size and (rises.min() < first or rises.max() > last)):
            raise ValueError(f"rises of {self.label!r} must be distances from {first} to {last}")

    def colours(self) -> tuple[Rgb, Rgb]:
        """(light, dark)"""
        if isinstance(self.colour, int):
            return CURVE_COLOURS[self.colour % len(CURVE_COLOURS)]
        return self.colour, self.colour


def _matrix(matrix: npt.NDArray[np.floating[Any]], length: int) -> np.ndarray:
    """Dense (L, L) as float32, or a profile (2L-1,) as float64; one check for both."""
    if matrix.shape not in ((length, length), (2 * length - 1,)):
        raise ValueError(f"matrix must be (L, L) or a profile (2L-1,) with L = {length}, got shape {matrix.shape}")
    return np.asarray(matrix, np.float32 if matrix.ndim == 2 else np.float64)


def bundle(
    *,
    curves: Sequence[Curve],
    matrix: npt.NDArray[np.floating[Any]],
    selected_curve: int,
    position: int,
    kind: Literal["dot", "cosine", "scaled"],
    length: int,
    labels: Mapping[str, str],
    height: int = 600,
    alt: str,
    file: str,
) -> bytes:
    """Everything the picture needs, as one blob for ``show`` or ``standalone_html("ripple", ...)``.

    ``matrix`` is the selected encoding's sim(p, j): dense (L, L) float32, or where only the
    distance counts the profile (2L-1,) float64 over j - p = -(L-1) .. L-1. ``position`` is the
    chosen p in [0, L); cells that are not finite (masked) stay empty. ``kind`` names the left axis.
    ``height`` is that of the canvas from 900 px width on; narrower, the matrix stands below and the
    picture is taller. ``labels`` translates ``LABELS``; what is missing stays English.
    """
    if not curves or not 0 <= selected_curve < len(curves):
        raise ValueError(
            f"selected_curve must be one of the {len(curves)} curves, counted from 0, got {selected_curve}"
        )
    if not 0 <= position < length:
        raise ValueError(f"position must be from 0 to {length - 1}, got {position}")
    if kind not in ("dot", "cosine", "scaled"):
        raise ValueError(f"kind must be 'dot', 'cosine' or 'scaled', got {kind!r}")
    arrays: dict[str, np.ndarray] = {"matrix": _matrix(matrix, length)}
    entries: list[dict[str, Any]] = []
    for i, curve in enumerate(curves):
        arrays[f"mean{i}"] = np.asarray(curve.mean, np.float64)
        arrays[f"spread{i}"] = np.asarray(curve.spread, np.float64)
        arrays[f"rises{i}"] = np.asarray(curve.rises, np.int32)
        light, dark = curve.colours()
        entries.append(
            {
                "label": curve.label,
                "axis": curve.axis,
                "two_sided": curve.two_sided,
                "light": list(light),
                "dark": list(dark),
                # Index 1 (sinusoidal) is the solid one; an RGB triple takes its place in the list.
                "dash": (curve.colour if isinstance(curve.colour, int) else i) + 3,
            }
        )
    meta = {
        "curves": entries,
        "selected": int(selected_curve),
        "position": int(position),
        "kind": kind,
        "length": int(length),
        "height": int(height),
        "labels": {**LABELS, **labels},
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_COMPONENT = st.components.v2.component("posviz_ripple", html="<div></div>", css=style("ripple"), js=script("ripple"))


def show(
    data: bytes,
    *,
    key: str,
    height: int | Literal["content"] = "content",
    on_position: Callable[[], None] | None = None,
) -> None:
    """Mount the picture; ``st.session_state[key].position`` is the position clicked last.

    The canvas sets its own height (that of ``bundle``, more when narrow): ``height`` is for a caller who
    wants it to scroll.
    """
    _COMPONENT(key=key, data=data, height=height, on_position_change=on_position or (lambda: None))
