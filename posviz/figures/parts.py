"""Where one score comes from: what content and what position add to it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.colours import Palette, Rgb, css, mix, palette
from posviz.figures.labels import SIZE, decimals_for, number, plain, text_width
from posviz.figures.layout import Frame, axis, figure
from posviz.types import Refusal, Text, shown

WIDTH, BAR = 620, 46  # px
TITLE = Text("Where the score comes from", "这个分数从哪里来")
SUM = Text("score (sum)", "分数（总和）")
X_LABEL = Text("added to the score", "对分数的贡献")
WORDS = {
    "content": Text("content", "内容"),
    "position": Text("position", "位置"),
    "bias": Text("bias", "偏置"),
    "rotation": Text("rotation", "旋转"),
}


def score_parts(
    parts: Mapping[str, Any],
    *,
    cell: tuple[int, int, int] | None = None,
    title: str = "",
    parameters: str = "",
    dark: bool = False,
    lang: str = "en",
) -> go.Figure:
    """Bars of the parts of one score, and their sum; content is grey, everything from position teal.

    parts: name -> number, or name -> (H, L, L) as in ``AttentionTrace.parts`` with ``cell`` = (head,
    query, key). A name joins what meets with an underscore: "content_position" is a content query and
    a position key. Raises :class:`posviz.Refusal`.
    """
    values = _values(parts, cell)
    colours = palette(dark)
    total = sum(values.values())
    bars = values | {SUM(lang): total}
    inks = [_ink(name, colours) for name in values] + [colours.text]
    names = [plain(_read(name, lang)) for name in values] + [plain(SUM(lang))]
    end = max(map(abs, bars.values())) or 1.0
    places = min(6, decimals_for(end))
    trace = go.Bar(
        x=np.array(list(bars.values())),
        y=names,
        orientation="h",
        width=0.62,
        marker={"color": [css(ink) for ink in inks], "line": {"width": 0}},
        text=[number(value, places, sign=True) for value in bars.values()],
        textposition="outside",
        textfont={"size": SIZE + 1, "color": css(colours.text)},
        cliponaxis=False,
        hovertemplate="%{y}<br><b>%{x:.6g}</b><extra></extra>",
    )
    count = len(bars)
    low, high = min(0.0, *bars.values()), max(0.0, *bars.values())
    room = 0.16 * (high - low or 1.0)
    return figure(
        [trace],
        colours,
        Frame(WIDTH, BAR * count, left=max(map(text_width, names)) + 44, right=40, bottom=64),
        title=title or TITLE(lang),
        parameters=parameters,
        xaxis=axis(colours, X_LABEL(lang), nticks=7)
        | {"range": [low - room * (low < 0), high + room * (high > 0)]}
        | {"zeroline": True, "zerolinecolor": css(colours.quiet), "zerolinewidth": 1},
        yaxis=axis(colours, type="category", range=[count - 0.5, -0.5])
        | {"tickfont": {"size": SIZE, "color": css(colours.text)}, "ticklabelstandoff": 8},
        shapes=[_rule(count - 1.5, colours)],
    )


def _values(parts: Mapping[str, Any], cell: tuple[int, int, int] | None) -> dict[str, float]:
    """One finite number for each name."""
    if not isinstance(parts, Mapping) or not parts:
        got = shown(type(parts).__name__) if not isinstance(parts, Mapping) else Text("none", "零项")
        raise Refusal(
            Text(
                "`parts` must be a mapping name -> number with at least one part, got {got}",
                "`parts` 必须是 名称 -> 数 的映射，至少一项，现在是 {got}",
            ),
            field="parts",
            got=got,
        )
    arrays = {str(name): np.asarray(part) for name, part in parts.items()}
    shapes = {array.shape for array in arrays.values()}
    axes = 0 if cell is None else 3
    if len(shapes) != 1 or len(next(iter(shapes))) != axes:
        raise Refusal(
            Text(
                "`parts` must all be {want}, got {got}",
                "`parts` 的每一项都必须是{want}，现在是 {got}",
            ),
            field="parts",
            want=Text("(heads, queries, keys) where `cell` is given", "形状 (头、查询、键)，因为给了 `cell`")
            if axes
            else Text("single numbers where no `cell` is given", "单个数，因为没有给 `cell`"),
            got=", ".join(f"{shown(name)} {array.shape}" for name, array in arrays.items()),
        )
    if cell is not None:
        at = _place(cell, next(iter(shapes)))
        arrays = {name: array[at] for name, array in arrays.items()}
    for name, value in arrays.items():
        if value.dtype.kind not in "fiu" or not np.isfinite(value):
            raise Refusal(
                Text("the part {name} must be a finite number, got {got}", "{name} 这一项必须是有限数，现在是 {got}"),
                field="parts",
                name=shown(name),
                got=shown(value.item()),
            )
    return {name: float(value) for name, value in arrays.items()}


def _place(cell: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    good = (
        isinstance(cell, tuple | list)
        and len(cell) == 3
        and all(isinstance(i, int | np.integer) and 0 <= i < n for i, n in zip(cell, shape, strict=True))
    )
    if not good:
        raise Refusal(
            Text(
                "`cell` must be (head, query, key) within {shape}, got {got}",
                "`cell` 必须是 {shape} 之内的（头、查询、键），现在是 {got}",
            ),
            field="cell",
            shape=str(shape),
            got=shown(cell),
        )
    return tuple(cell)


def _ink(name: str, colours: Palette) -> Rgb:
    """Grey for content alone, teal for position; lighter where content meets position."""
    words = set(name.split("_"))
    if words == {"content"}:
        return colours.content
    return mix(colours.position, colours.background, 0.38) if "content" in words else colours.position


def _read(name: str, lang: str) -> str:
    """content_position -> content·position."""
    return "·".join(WORDS[word](lang) if word in WORDS else word for word in name.split("_"))


def _rule(y: float, colours: Palette) -> dict[str, Any]:
    """The line above the sum."""
    line = {"color": css(colours.line), "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}
