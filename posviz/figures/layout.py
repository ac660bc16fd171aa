"""The common layout: sizes, title, axes and their labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.colours import Palette, css, mix
from posviz.figures.labels import SIZE, plain, short, text_width, wrapped

FONT = (
    "'Noto Sans CJK SC', 'Noto Sans SC', system-ui, -apple-system, 'Segoe UI', Roboto, "
    "'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', sans-serif"
)
TITLE_SIZE = 21


@dataclass(frozen=True)
class Frame:
    """Sizes in pixels: the plot itself and what stands to its left, right and below."""

    width: float
    height: float
    left: float = 70
    right: float = 30
    bottom: float = 60


def figure(
    traces: list[Any], colours: Palette, frame: Frame, *, title: str, parameters: str, **layout: Any
) -> go.Figure:
    """The traces in the common layout: title and parameters at the top left, fixed pixel sizes."""
    width = frame.left + frame.width + frame.right
    titles = wrapped(title, width - 40, TITLE_SIZE * 1.06)
    notes = wrapped(parameters, width - 40, SIZE)
    top = 20 + round(TITLE_SIZE * 1.3) * len(titles) + round(SIZE * 1.4) * len(notes) + 18
    font = {"family": FONT, "size": SIZE, "color": css(colours.text)}
    # Plotly's own subtitle keeps another distance when it has one line than when it has two.
    subtitle = {
        "text": "<br>".join(notes),
        "font": {"size": SIZE, "color": css(colours.quiet)},
        "showarrow": False,
        "align": "left",
        **{"x": 0, "xref": "paper", "xanchor": "left", "xshift": 20 - frame.left},
        **{"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 16, "borderpad": 0},
    }
    common = {
        # Never the default template: importing streamlit replaces it with placeholder colours.
        "template": go.layout.Template(),
        "title": {
            "text": "<br>".join(titles),
            "font": {"size": TITLE_SIZE, "weight": 600},
            **{"x": 0, "xanchor": "left", "y": 1, "yanchor": "top"},
            "pad": {"l": 20, "t": 16 + 4 * len(titles)},  # plotly.js lifts every further line by 4 px
        },
        "annotations": [subtitle] if notes else [],
        "font": font,
        "paper_bgcolor": css(colours.background),
        "plot_bgcolor": css(colours.background),
        "width": round(width),
        "height": round(top + frame.height + frame.bottom),
        "margin": {"l": frame.left, "r": frame.right, "t": top, "b": frame.bottom, "pad": 0},
        "hoverlabel": {
            "bgcolor": css(mix(colours.text, colours.background, 0.94)),
            "bordercolor": css(colours.line),
            "font": font,
            "align": "left",
        },
        "showlegend": False,
        "modebar": {
            "remove": ["sendChartToCloud", "select2d", "lasso2d"],  # nothing leaves the machine
            "bgcolor": "rgba(0,0,0,0)",
            "color": css(colours.line),
            "activecolor": css(colours.quiet),
        },
    }
    result = go.Figure(traces, common | layout)
    for trace in result.data:  # Plotly's copies can be written to
        for name in ("x", "y", "z", "text", "customdata"):
            if name in trace and isinstance(trace[name], np.ndarray):
                trace[name].flags.writeable = False
    return result


def axis(colours: Palette, title: str = "", **options: Any) -> dict[str, Any]:
    """A quiet axis: no grid, no zero line, text of at least 14 px."""
    font = {"size": SIZE, "color": css(colours.quiet)}
    return {
        "title": {"text": plain(title), "font": font, "standoff": 12},
        "tickfont": font,
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 6,
        "minexponent": 5,
        **options,
    }


def label_ticks(labels: Sequence[str], places: Sequence[Any], cell: float, *, along: bool) -> dict[str, Any]:
    """Tick options for labelled cells of ``cell`` pixels: turned where they are wide, every n-th where dense.

    along: whether the labels stand side by side (columns) instead of one above the other (rows).
    """
    turned = along and label_room(labels) > cell - 6
    step = 1 if along and not turned else max(1, math.ceil(SIZE * 1.25 / cell))
    return {
        "tickmode": "array",
        "tickvals": list(places[::step]),
        "ticktext": [plain(short(label)) for label in labels[::step]],
        "tickangle": -90 if turned else 0,
    }


def label_room(labels: Sequence[str]) -> float:
    """Pixels that the widest of these labels takes on an axis."""
    return max(text_width(short(label)) for label in labels)
