"""Curves under one another that share a crosshair: the pictures of the RoPE workbench (``plots.js``).

A :class:`Plot` is axes with series and marks; all texts arrive translated. The value under the pointer, or
chosen with the arrow keys, is shown for every series at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

LABELS: dict[str, str] = {
    "save": N_("Save"),
    "hint": N_("← →: step · Esc: let go"),
    "between": N_("{low} to {high}"),
}

Colour = Literal["a", "b", "quiet", "position"] | int
STYLES = ("line", "dots", "rings", "band")


@dataclass(frozen=True, eq=False)
class Series:
    """One curve. x, y (n,) float64, NaN leaves a gap.

    style: "line", "dots", "rings", or "band": x has n + 1 edges, and y, high (n,) are the lowest and highest
    value between two of them. colour: a side's, "quiet", "position", or an index of the curves' own colours.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    colour: Colour
    style: str = "line"
    high: np.ndarray | None = None
    dashed: bool = False

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.style not in STYLES:
            raise ValueError(f"style must be one of {', '.join(STYLES)}, got {self.style!r}")
        if (self.high is not None) != (self.style == "band"):
            raise ValueError(f"{self.label!r}: a band has high values, others have none")
        if len(self.x) != n + (self.style == "band") or (self.high is not None and len(self.high) != n):
            raise ValueError(f"{self.label!r}: {len(self.x)} places for {n} values")
        if not np.isfinite(self.x).all() or (np.diff(self.x) <= 0).any():
            raise ValueError(f"{self.label!r}: x must rise")


@dataclass(frozen=True)
class Mark:
    """A line across the plot at a value of x or y, with its name."""

    at: float
    label: str
    colour: Colour = "quiet"
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, eq=False)
class Plot:
    """Axes with their series. x_range, y_range: ends of the axes; y_ticks: (value, text) instead of round numbers.

    x_name: how the tip names a place, with {x} (and {last} over bands). share: part of the height.
    """

    title: str
    x_label: str
    series: Sequence[Series]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_name: str = "{x}"
    marks: Sequence[Mark] = ()
    x_log: bool = False
    y_log: bool = False
    y_ticks: Sequence[tuple[float, str]] = field(default_factory=tuple)
    share: float = 1.0
    legend: bool = True

    def __post_init__(self) -> None:
        for name, (low, high), log in (("x", self.x_range, self.x_log), ("y", self.y_range, self.y_log)):
            if not low < high or (log and low <= 0):
                raise ValueError(f"{name}_range must rise{' above 0' if log else ''}, got {low} to {high}")
        if not self.series:
            raise ValueError("a plot needs a series")


def bundle(
    plots: Sequence[Plot],
    *,
    name: str,
    labels: Mapping[str, str] = LABELS,
    height: int = 430,
    alt: str = "",
    file: str = "posviz-plots",
) -> bytes:
    """The picture's data. name: which picture it is, so that the crosshair of another one is let go."""
    missing = [key for key in LABELS if key not in labels]
    if missing:
        raise ValueError(f"labels lacks {', '.join(missing)}")
    arrays: dict[str, np.ndarray] = {}
    described = []
    for p, plot in enumerate(plots):
        series = []
        for s, one in enumerate(plot.series):
            for part, values in (("x", one.x), ("y", one.y), ("high", one.high)):
                if values is not None:
                    arrays[f"{part}{p}.{s}"] = np.asarray(values, np.float64)
            series.append({"label": one.label, "colour": one.colour, "style": one.style, "dashed": one.dashed})
        described.append(
            {
                "title": plot.title,
                "x_label": plot.x_label,
                "x_name": plot.x_name,
                "x_range": [float(v) for v in plot.x_range],
                "y_range": [float(v) for v in plot.y_range],
                "x_log": plot.x_log,
                "y_log": plot.y_log,
                "y_ticks": [[float(v), text] for v, text in plot.y_ticks],
                "share": plot.share,
                "legend": plot.legend,
                "series": series,
                "marks": [
                    {"at": float(m.at), "label": m.label, "colour": m.colour, "axis": m.axis} for m in plot.marks
                ],
            }
        )
    meta = {
        "name": name,
        "plots": described,
        "labels": {key: labels[key] for key in LABELS},
        "height": height,
        "alt": alt,
        "file": file,
    }
    return pack(meta, arrays)


_mount = st.components.v2.component(
    "posviz_plots",
    html='<div class="reserve"></div>\n',  # keeps the page from jumping until the script has made the stage
    css=style("plots"),
    js=script("plots"),
)


def show(data: bytes, *, key: str, on_change: Callable[[], None] = lambda: None) -> None:
    """Mount the picture."""
    _mount(data=data, key=key, on_chosen_change=on_change)
