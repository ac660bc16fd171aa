"""Attention of every head: small multiples in one heatmap trace, which a browser draws at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import checked_limit, largest, masked, numbers
from posviz.figures.cells import colour_bar, hatching, noted, outlines, written
from posviz.figures.colours import Palette, Rgb, Scale, css, palette
from posviz.figures.labels import SIZE, labels_of, plain, text_width
from posviz.figures.layout import Frame, axis, figure, label_room, label_ticks
from posviz.types import Refusal, Text, Tokens, shown

WIDTH, HEIGHT = 1080, 800  # px that the panels fill at most
CELL = 62  # px of the largest cell
BESIDE, ABOVE = 24, 34  # px between panels; a panel's name stands above it
NAMED = 40_000  # cells that carry their tokens' full text; in larger figures hovering shows indices
NOISE = 0.01  # smallest end of a difference's colour scale, so that rounding stays white

HEAD = Text("head {h}", "头 {h}")
QUERY = Text("query", "查询")
KEY = Text("key", "键")
WEIGHT = Text("weight", "权重")
OF_SENTENCE = Text("What each head of sentence {s} looks at", "句子 {s} 的每个头在看什么")
DIFFERENCE = Text("Attention of A minus attention of B, tokens matched", "词对齐后，A 的注意力减 B 的注意力")
UNSTATED = Text("weights of unstated origin", "权重来源未注明")


def attention_heads(
    weights: Any,
    tokens: Tokens | Sequence[str],
    *,
    sentence: str = "A",
    allowed: Any = None,
    limit: float = 1.0,
    title: str = "",
    provenance: str = "",
    dark: bool = False,
    lang: str = "en",
) -> go.Figure:
    """weights (H, L, L) after the softmax, a panel for each head; rows are queries, columns keys.

    White at 0 to blue (sentence "A") or orange ("B") at 1, so that figures can be compared; where many
    tokens share one weight, a smaller ``limit`` shows more. allowed (L, L): False where a query may not
    look; those cells stay empty over a hatched ground. provenance: where the weights come from
    ("untrained, seed 0"); if empty, the figure says that nobody told.
    Raises :class:`posviz.Refusal`.
    """
    colours = palette(dark)
    if sentence not in ("A", "B"):
        raise Refusal(
            Text("`sentence` must be A or B, got {got}", "`sentence` 只能是 A 或 B，现在是 {got}"),
            field="sentence",
            got=shown(sentence),
        )
    values = _square("weights", weights)
    if (values[np.isfinite(values)] < 0).any() or largest(values) > 1 + 1e-6:
        raise Refusal(
            Text(
                "`weights` must be from 0 to 1, as after the softmax, got {low} to {high}",
                "`weights` 必须在 0 到 1 之间（softmax 之后），现在是 {low} 到 {high}",
            ),
            field="weights",
            low=f"{np.nanmin(values):.6g}",
            high=f"{np.nanmax(values):.6g}",
        )
    ink = colours.a if sentence == "A" else colours.b
    return _panels(
        _where_allowed(values, allowed),
        labels_of("tokens", tokens, values.shape[1]),
        colours.sequential(checked_limit(limit, 1.0), ink),
        colours,
        ink,
        title=title or OF_SENTENCE(lang, s=sentence),
        provenance=provenance or UNSTATED(lang),
        z_label=WEIGHT(lang),
        lang=lang,
    )


def attention_difference(
    difference: Any,
    tokens: Tokens | Sequence[str],
    *,
    limit: float | None = None,
    allowed: Any = None,
    title: str = "",
    provenance: str = "",
    dark: bool = False,
    lang: str = "en",
) -> go.Figure:
    """difference (H, M, M): attention of A minus attention of B between the same M tokens, in A's order.

    Blue where A looks more, orange where B does, white at zero. limit: end of the scale (default: the
    largest difference, at least 0.01, so that rounding noise stays white). The rest as in
    :func:`attention_heads`. Raises :class:`posviz.Refusal`.
    """
    colours = palette(dark)
    values = _square("difference", difference)
    end = checked_limit(limit, max(largest(values), NOISE))
    return _panels(
        _where_allowed(values, allowed),
        labels_of("tokens", tokens, values.shape[1]),
        colours.difference(end),
        colours,
        colours.text,
        title=title or DIFFERENCE(lang),
        provenance=provenance or UNSTATED(lang),
        z_label="A − B",
        lang=lang,
    )


def _square(name: str, values: Any) -> np.ndarray:
    array = numbers(name, values, "(heads, tokens, tokens)")
    if array.shape[1] != array.shape[2]:
        raise Refusal(
            Text(
                "`{name}` must have as many keys as queries, got shape {got}",
                "`{name}` 的键数必须等于查询数，现在形状是 {got}",
            ),
            field=name,
            name=name,
            got=str(array.shape),
        )
    return array


def _where_allowed(values: np.ndarray, allowed: Any) -> np.ndarray:
    """The values, NaN where a query may not look."""
    if allowed is None:
        return masked(values)
    mask = np.asarray(allowed)
    if mask.dtype != np.bool_ or mask.shape != values.shape[1:]:
        raise Refusal(
            Text(
                "`allowed` must be True or False for each query and key, shape {want}, got {dtype} of shape {got}",
                "`allowed` 必须对每个查询和键给出 True 或 False，形状 {want}，现在是形状为 {got} 的 {dtype}",
            ),
            field="allowed",
            want=str(values.shape[1:]),
            dtype=str(mask.dtype),
            got=str(mask.shape),
        )
    return masked(np.where(mask, values, np.nan))


@dataclass(frozen=True)
class Grid:
    """Where the panels lie: ``columns`` of them side by side, cells of ``cell`` pixels, n x n a panel.

    Places are in cells from the top left. Between two panels lies one empty row or column of cells
    as wide as the gap, so that all of them fit into one array.
    """

    heads: int
    n: int
    columns: int
    cell: float

    @classmethod
    def fitting(cls, heads: int, n: int) -> "Grid":
        """The arrangement with the largest cells; among equal ones the one with the fewest holes and rows."""

        def cell(columns: int) -> float:
            rows = math.ceil(heads / columns)
            wide = (WIDTH - (columns - 1) * BESIDE) / (columns * n)
            return max(1.0, min(CELL, wide, (HEIGHT - rows * ABOVE) / (rows * n)))

        best = max(range(1, heads + 1), key=lambda c: (round(cell(c)), -(-heads % c), c))
        return cls(heads, n, best, cell(best))

    @property
    def rows(self) -> int:
        return math.ceil(self.heads / self.columns)

    def left(self, column: int) -> float:
        return column * (self.n + BESIDE / self.cell)

    def top(self, row: int) -> float:
        return row * self.n + (row + 1) * ABOVE / self.cell

    @property
    def width(self) -> float:
        return self.left(self.columns - 1) + self.n

    @property
    def height(self) -> float:
        return self.top(self.rows - 1) + self.n

    def place(self, head: int) -> tuple[slice, slice]:
        """Where a head's cells are in the composed array."""
        row, column = divmod(head, self.columns)
        step = self.n + 1
        return slice(row * step, row * step + self.n), slice(column * step, column * step + self.n)

    def corner(self, head: int) -> tuple[float, float]:
        row, column = divmod(head, self.columns)
        return self.left(column), self.top(row)

    def compose(self, values: np.ndarray, empty: Any, dtype: Any) -> np.ndarray:
        """(H, n, n, ...) in one array with gaps of ``empty``."""
        step = self.n + 1
        result = np.full((self.rows * step - 1, self.columns * step - 1, *values.shape[3:]), empty, dtype)
        for head in range(self.heads):
            result[self.place(head)] = values[head]
        return result

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Borders of the columns and rows of the composed array."""
        steps = np.arange(self.n + 1)
        x = np.concatenate([self.left(c) + steps for c in range(self.columns)])
        y = np.concatenate([self.top(r) + steps for r in range(self.rows)])
        return x, y


def _panels(
    values: np.ndarray,
    labels: Sequence[str],
    scale: Scale,
    colours: Palette,
    ink: Rgb,
    *,
    title: str,
    provenance: str,
    z_label: str,
    lang: str,
) -> go.Figure:
    heads, n, _ = values.shape
    grid = Grid.fitting(heads, n)
    x, y = grid.edges()
    width, height = grid.width * grid.cell, grid.height * grid.cell
    cells = go.Heatmap(
        z=grid.compose(values, np.nan, np.float64),
        x=x,
        y=y,
        hoverongaps=False,
        colorbar=colour_bar(colours, z_label, scale, height - ABOVE) | {"y": 1 - ABOVE / height},
        **scale.options(),
        **_hover(grid, labels, z_label, lang),
        **_cell_numbers(grid, values, scale),
    )
    corners = [grid.corner(h) for h in range(heads)]
    turned = label_room(labels) > grid.cell - 6
    frame = Frame(
        width,
        height,
        left=label_room(labels) + 62,
        right=120 + max(0, 240 - width),
        bottom=(label_room(labels) if turned else 22) + 50,
    )
    centre = np.arange(n) + 0.5
    columns = [grid.left(c) + centre for c in range(min(heads, grid.columns))]
    rows = [grid.top(r) + centre for r in range(grid.rows)]
    token = {"tickfont": {"size": SIZE, "color": css(ink)}, "showgrid": False}
    return figure(
        [cells, _names(grid, corners, colours, lang)],
        colours,
        frame,
        title=title,
        parameters=noted(provenance, values, lang),
        xaxis=axis(colours, KEY(lang), range=[0, grid.width]) | token | _ticks(labels, columns, grid.cell, along=True),
        yaxis=axis(colours, QUERY(lang), range=[grid.height, 0]) | token | _ticks(labels, rows, grid.cell, along=False),
        images=hatching(colours, values, corners, (grid.cell, grid.cell)),
        shapes=[outlines(colours, [(left, top, n, n) for left, top in corners])],
    )


def _ticks(labels: Sequence[str], places: list[np.ndarray], cell: float, *, along: bool) -> dict[str, Any]:
    """The labels of one panel, at every panel."""
    one = label_ticks(labels, range(len(labels)), cell, along=along)
    return one | {
        "tickvals": [float(place[i]) for place in places for i in one["tickvals"]],
        "ticktext": one["ticktext"] * len(places),
    }


def _names(grid: Grid, corners: list[tuple[float, float]], colours: Palette, lang: str) -> go.Scatter:
    """ "head 0" above each panel."""
    return go.Scatter(
        x=[left for left, _ in corners],
        y=[top - 6 / grid.cell for _, top in corners],
        text=[HEAD(lang, h=h) for h in range(grid.heads)],
        mode="text",
        textposition="top right",
        textfont={"size": SIZE, "color": css(colours.quiet)},
        hoverinfo="skip",
    )


def _hover(grid: Grid, labels: Sequence[str], z_label: str, lang: str) -> dict[str, Any]:
    """What each cell says: head, query and key, by name unless the figure is very large."""
    heads, n = grid.heads, grid.n
    indices = np.stack(np.indices((heads, n, n)), axis=-1)
    if heads * n * n <= NAMED:
        names = np.array([plain(label) for label in labels], dtype=object)
        parts = np.empty(indices.shape, dtype=object)
        parts[..., 0], parts[..., 1:] = indices[..., 0], names[indices[..., 1:]]
        data = grid.compose(parts, None, object)
    else:
        data = grid.compose(indices, 0, np.int16)
    head = plain(HEAD(lang, h="_")).replace("_", "%{customdata[0]}")
    who = f"{plain(QUERY(lang))} %{{customdata[1]}} → {plain(KEY(lang))} %{{customdata[2]}}"
    value = f"{plain(z_label)} <b>%{{z:.4f}}</b>"
    return {"customdata": data, "hovertemplate": f"{head}<br>{who}<br>{value}<extra></extra>"}


def _cell_numbers(grid: Grid, values: np.ndarray, scale: Scale) -> dict[str, Any]:
    """Two decimals in cells that have room for them; thin gaps between large cells."""
    gap = {"xgap": 1, "ygap": 1} if grid.cell >= 14 else {}
    signed = scale.low < 0
    if grid.cell < text_width("+0.00" if signed else "0.00") + 4:
        return gap
    return gap | {
        "text": grid.compose(written(values, scale, 2, sign=signed), "", object),
        "texttemplate": "%{text}",
        "textfont": {"size": SIZE},
    }
