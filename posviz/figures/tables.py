"""A table of numbers as a heatmap: encodings, biases, similarities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import checked_limit, largest, masked, numbers
from posviz.figures.cells import colour_bar, hatching, noted, outlines, written
from posviz.figures.colours import Palette, Scale, palette
from posviz.figures.labels import SIZE, decimals_for, labels_of, number, plain, text_width
from posviz.figures.layout import Frame, axis, figure, label_room, label_ticks
from posviz.types import Refusal, Text, Tokens

WIDTH, HEIGHT = 860, 540  # px of the largest plot
CELL = 62  # px of the largest cell


def heatmap(
    values: Any,
    *,
    x_label: str,
    y_label: str,
    title: str,
    signed: bool = True,
    limit: float | None = None,
    row_labels: Tokens | Sequence[Any] | None = None,
    col_labels: Tokens | Sequence[Any] | None = None,
    z_label: str = "",
    dark: bool = False,
    parameters: str = "",
    lang: str = "en",
) -> go.Figure:
    """A table (rows, cols), row 0 at the top; purple below zero, white (near-black when dark) at zero, green above.

    signed: False for values from 0 on, drawn from white to teal. limit: end of the colour scale, which
    is -limit .. limit or 0 .. limit (default: the largest value; give it where two pictures are
    compared). What is larger is drawn as the end; hovering shows every value. Values that are not
    finite are masked: left empty over a hatched ground.

    row_labels, col_labels: Tokens or a label for each row or column (default: their indices). z_label:
    what the values are. parameters: the line under the title. All texts are drawn as they are.
    Raises :class:`posviz.Refusal`.
    """
    colours = palette(dark)
    cells = masked(numbers("values", values, "(rows, cols)"))
    rows, cols = cells.shape
    if not signed and np.nanmin(cells, initial=0.0) < 0:
        raise Refusal(
            Text(
                "`values` must not be negative where `signed` is False, got {got}; set `signed` to True",
                "`signed` 为 False 时 `values` 不能有负数，现在有 {got}；请把 `signed` 设为 True",
            ),
            field="values",
            got=f"{np.nanmin(cells):.6g}",
        )
    end = checked_limit(limit, largest(cells))
    scale = colours.signed(end) if signed else colours.sequential(end, colours.position)
    width, height = _size(rows, cols)
    row_names = None if row_labels is None else labels_of("row_labels", row_labels, rows)
    col_names = None if col_labels is None else labels_of("col_labels", col_labels, cols)
    trace = go.Heatmap(
        z=cells,
        x=None if col_names is None else [plain(name) for name in col_names],
        y=None if row_names is None else [plain(name) for name in row_names],
        colorbar=colour_bar(colours, z_label, scale, height),
        hoverongaps=False,
        hovertemplate=(
            f"{plain(y_label)} %{{y}}<br>{plain(x_label)} %{{x}}<br>{plain(z_label)} <b>%{{z:.6g}}</b><extra></extra>"
        ),
        **scale.options(),
        **_cell_numbers(cells, scale, width / cols, height / rows),
    )
    return figure(
        [trace],
        colours,
        _frame(width, height, rows, cols, row_names, col_names),
        title=title,
        parameters=noted(parameters, cells, lang),
        xaxis=_side(colours, x_label, col_names, cols, width / cols, along=True),
        yaxis=_side(colours, y_label, row_names, rows, height / rows, along=False),
        shapes=[outlines(colours, [(-0.5, -0.5, cols, rows)])],
        images=hatching(colours, [cells], [(-0.5, -0.5)], (width / cols, height / rows)),
    )


def _size(rows: int, cols: int) -> tuple[float, float]:
    """Pixels of the plot: square cells for a square table, else as much of the page as helps."""
    if rows == cols:
        side = min(HEIGHT, CELL * rows)
        return side, side
    return min(WIDTH, CELL * cols), min(HEIGHT, CELL * rows)


def _frame(
    width: float,
    height: float,
    rows: int,
    cols: int,
    row_names: Sequence[str] | None,
    col_names: Sequence[str] | None,
) -> Frame:
    left = label_room(row_names or [str(rows - 1)])
    below = 20.0
    if col_names and label_room(col_names) > width / cols - 6:  # turned
        below = label_room(col_names)
    return Frame(width, height, left=left + 62, right=120 + max(0, 240 - width), bottom=below + 52)


def _side(
    colours: Palette, title: str, names: Sequence[str] | None, count: int, cell: float, *, along: bool
) -> dict[str, Any]:
    """One axis; positions count from the top left."""
    ends = [-0.5, count - 0.5] if along else [count - 0.5, -0.5]
    if names is None:
        ticks = {"dtick": 1, "tick0": 0} if cell >= 2 * SIZE else {"nticks": 9}
        return axis(colours, title, range=ends, **ticks)
    ticks = label_ticks(names, range(count), cell, along=along)
    return axis(colours, title, type="category", range=ends, **ticks)


def _cell_numbers(cells: np.ndarray, scale: Scale, width: float, height: float) -> dict[str, Any]:
    """Numbers in the cells, where every one has room; thin gaps between cells that are large."""
    gap = {"xgap": 1, "ygap": 1} if min(width, height) >= 20 else {}
    signed, places = scale.low < 0, decimals_for(scale.high)
    longest = number(-largest(cells), places) if signed else number(largest(cells), places)
    if height < 1.6 * SIZE or width < text_width(longest) + 4:
        return gap
    return gap | {
        "text": written(cells, scale, places, sign=signed),
        "texttemplate": "%{text}",
        "textfont": {"size": SIZE},
    }
