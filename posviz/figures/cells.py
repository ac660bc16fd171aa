"""What lies in and beside the cells of a heatmap: numbers, the colour bar, and the hatching of empty ones."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from posviz.figures.colours import Palette, Scale, css, mix
from posviz.figures.labels import SIZE, decimals_for, number, plain
from posviz.types import Text

HATCH = 9  # px between the strokes
MAX_RUNS = 20_000  # pieces that are hatched one by one; in denser patterns the ground of all cells is


MASKED = Text("hatched: masked", "斜线：被掩码遮住")


def noted(parameters: str, values: np.ndarray, lang: str) -> str:
    """The line under the title, with a word about the hatching where there is any."""
    return " · ".join(filter(None, (parameters, MASKED(lang) if np.isnan(values).any() else "")))


def outlines(colours: Palette, boxes: Sequence[tuple[float, float, float, float]]) -> dict[str, Any]:
    """One path around every box (x, y, width, height): zero has the page's colour, and needs an edge."""
    path = "".join(f"M{x},{y}H{x + w}V{y + h}H{x}Z" for x, y, w, h in boxes)
    return {"type": "path", "path": path, "line": {"color": css(colours.line), "width": 1}}


def written(values: np.ndarray, scale: Scale, places: int, *, sign: bool = False) -> np.ndarray:
    """Each value as text that can be read on its cell; "" where there is none. Same shape, of objects."""
    result = np.full(values.shape, "", dtype=object)
    for at in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = float(values[at])
        ink = css(scale.ink(value))
        result[at] = f"<span style='color:{ink}'>{number(value, places, sign=sign)}</span>"
    return result


def colour_bar(colours: Palette, title: str, scale: Scale, height: float) -> dict[str, Any]:
    """A narrow bar that begins at the top of the plot and is marked at its ends and middle."""
    font = {"size": SIZE, "color": css(colours.quiet)}
    ticks = scale_ticks(scale.low, scale.high)
    return {
        "title": {"text": plain(title), "font": font, "side": "right"},
        "tickfont": font,
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "ticks": "",
        "outlinewidth": 1,
        "outlinecolor": css(colours.line),
        "thickness": 14,
        "lenmode": "pixels",
        "len": min(height, 260),
        **{"x": 1, "xpad": 18, "y": 1, "yanchor": "top", "ypad": 0},
    }


def scale_ticks(low: float, high: float) -> dict[float, str]:
    """The ends and the middle of a colour scale, value -> text."""
    places = decimals_for(high)
    texts = {value: number(value, places) for value in (low, (low + high) / 2, high)}
    while places and all(text.endswith("0") for text in texts.values()):
        texts, places = {v: text[:-1].rstrip(".") for v, text in texts.items()}, places - 1
    return texts


def hatching(
    colours: Palette,
    tables: Sequence[np.ndarray],
    corners: Sequence[tuple[float, float]],
    cell: tuple[float, float],
) -> list[dict[str, Any]]:
    """A layout image under the cells that hatches the NaN ones of each table (rows, cols), or none.

    corners: left and top edge of each table on the axes. cell: width and height of a cell in pixels.
    Nobody shall take an empty cell for a zero.
    """
    boxes = [
        (x + column, y + row, width)
        for table, (x, y) in zip(tables, corners, strict=True)
        for row, column, width in _runs(np.isnan(table))
    ]
    if not boxes:
        return []
    x0, y0 = min(x for x, _ in corners), min(y for _, y in corners)
    width = max(x + table.shape[1] for table, (x, _) in zip(tables, corners, strict=True)) - x0
    height = max(y + table.shape[0] for table, (_, y) in zip(tables, corners, strict=True)) - y0
    if len(boxes) > MAX_RUNS:
        boxes = [
            (x, y + row, table.shape[1])
            for table, (x, y) in zip(tables, corners, strict=True)
            for row in range(len(table))
        ]
    # One path, so that no seam shows between neighbouring boxes.
    path = "".join(
        f"M{(x - x0) * cell[0]:.1f} {(y - y0) * cell[1]:.1f}h{w * cell[0]:.1f}v{cell[1]:.1f}h{-w * cell[0]:.1f}z"
        for x, y, w in boxes
    )
    return [
        {
            "source": _svg(colours, path, width * cell[0], height * cell[1]),
            **{"xref": "x", "yref": "y", "x": x0, "y": y0, "sizex": width, "sizey": height},
            **{"sizing": "stretch", "layer": "below"},
        }
    ]


def _runs(mask: np.ndarray) -> list[tuple[int, int, int]]:
    """(row, first column, length) of each unbroken run of True."""
    steps = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    return list(zip(rows.tolist(), starts.tolist(), (ends - starts).tolist(), strict=True))


def _svg(colours: Palette, path: str, width: float, height: float) -> str:
    ground, stroke = css(colours.masked), css(mix(colours.text, colours.background, 0.74))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.1f}" height="{height:.1f}">'
        f'<pattern id="h" width="{HATCH}" height="{HATCH}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="{HATCH}" height="{HATCH}" fill="{ground}"/>'
        f'<path d="M0 0V{HATCH}" stroke="{stroke}" stroke-width="2"/></pattern>'
        f'<path d="{path}" fill="url(#h)"/></svg>'
    )
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()
