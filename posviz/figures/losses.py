"""Loss of language models against position, in training and beyond it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import numbers
from posviz.figures.colours import Palette, css, palette
from posviz.figures.curves import DASHES
from posviz.figures.labels import SIZE, plain
from posviz.figures.layout import Frame, axis, figure
from posviz.types import Refusal, Text, shown, whole_number

X_LABEL = Text("position of the token that is guessed", "被预测的词元的位置")
Y_LABEL = Text("loss, nats a token", "损失，nat/词元")
TITLE = Text("Loss against position", "损失随位置的变化")
TRAINED = Text("trained up to here", "训练只到这里")


def _figure(
    lines: Sequence[go.Scatter],
    colours: Palette,
    width: int,
    height: int,
    title: str,
    parameters: str,
    lang: str,
    **x_axis: Any,
) -> go.Figure:
    """Losses over positions, the legend below the axis and its title."""
    return figure(
        lines,
        colours,
        Frame(width, height, left=84, right=24, bottom=112),
        title=title or TITLE(lang),
        parameters=parameters,
        showlegend=True,
        legend={
            "font": {"size": SIZE, "color": css(colours.text)},
            "bgcolor": "rgba(0,0,0,0)",
            **{"orientation": "h", "x": 0, "y": -62 / height, "yanchor": "top"},
        },
        hovermode="closest",
        xaxis=axis(colours, X_LABEL(lang), showline=True, linecolor=css(colours.line), ticks="outside") | x_axis,
        yaxis=axis(colours, Y_LABEL(lang)) | {"showgrid": True, "gridcolor": css(colours.line)},
    )


def loss_by_position(
    curves: Mapping[str, Any],
    *,
    trained_len: int,
    width: int = 900,
    height: int = 360,
    title: str = "",
    dark: bool = False,
    parameters: str = "",
    lang: str = "en",
) -> go.Figure:
    """Curves name -> (n,): the loss of the token at position 1, 2, ..., n; a line marks the trained length.

    Raises :class:`posviz.Refusal`.
    """
    if not isinstance(curves, Mapping) or not curves:
        raise Refusal(
            Text(
                "`curves` must be a mapping name -> losses with at least one curve, got {got}",
                "`curves` 必须是 名称 -> 损失 的映射，至少一条曲线，现在是 {got}",
            ),
            field="curves",
            got=shown(type(curves).__name__) if not isinstance(curves, Mapping) else Text("none", "零条"),
        )
    whole_number("trained_len", trained_len, 1, 1_000_000)
    colours = palette(dark)
    checked = {str(name): numbers(str(name), values, "(n,)") for name, values in curves.items()}
    lines = [
        go.Scatter(
            x=np.arange(1.0, len(values) + 1),
            y=values,
            name=plain(name),
            mode="lines",
            line={
                "color": css(colours.curves[i % len(colours.curves)]),
                "width": 2.5,
                "dash": DASHES[i // len(colours.curves) % len(DASHES)],
            },
            hovertemplate=f"<b>{plain(name)}</b><br>{plain(X_LABEL(lang))} %{{x}}<br>%{{y:.3f}}<extra></extra>",
        )
        for i, (name, values) in enumerate(checked.items())
    ]
    result = _figure(lines, colours, width, height, title, parameters, lang)
    # Plotly counts a shape by its axes; everything right of it was never trained.
    last = max(map(len, checked.values()))
    if last > trained_len:
        result.add_vrect(x0=trained_len, x1=last, fillcolor=css(colours.quiet, 0.07), line_width=0, layer="below")
    result.add_vline(x=trained_len, line={"color": css(colours.quiet), "width": 1, "dash": "dot"})
    result.add_annotation(
        x=trained_len,
        y=1,
        yref="paper",
        text=plain(TRAINED(lang)),
        showarrow=False,
        **{"xanchor": "left", "yanchor": "top", "xshift": 6},
        font={"size": SIZE, "color": css(colours.quiet)},
    )
    return result


BEFORE, AFTER = Text("intact", "原样"), Text("operated", "改动后")


def losses_before_after(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    pieces: Mapping[str, Sequence[str]],
    *,
    width: int = 900,
    height: int = 320,
    title: str = "",
    dark: bool = False,
    parameters: str = "",
    lang: str = "en",
) -> go.Figure:
    """Loss of every next token of A and B, dotted before an operation on the model and drawn through after it.

    before, after: "A" and "B" -> (n,) nats. pieces: "A" and "B" -> the n tokens that are guessed.
    Raises :class:`posviz.Refusal`.
    """
    for name, given in (("before", before), ("after", after), ("pieces", pieces)):
        if not isinstance(given, Mapping) or not {"A", "B"} <= given.keys():
            raise Refusal(
                Text(
                    "`{name}` must be a mapping with A and B, got {got}",
                    "`{name}` 必须是含有 A 和 B 的映射，现在是 {got}",
                ),
                field=name,
                name=name,
                got=shown(", ".join(map(str, given)) if isinstance(given, Mapping) else given) or Text("nothing", "空"),
            )
    colours = palette(dark)
    lines = []
    for side, ink in (("A", colours.a), ("B", colours.b)):
        for values, name, dash in ((before[side], BEFORE, "dot"), (after[side], AFTER, "solid")):
            checked = numbers(f"{side}, {name.en}", values, "(n,)")
            words = pieces[side]
            if len(words) != len(checked):
                raise Refusal(
                    Text(
                        "there must be one token for each of the {n} losses of {side}, got {got}",
                        "{side} 的 {n} 个损失要各有一个词元，现在有 {got} 个",
                    ),
                    field="pieces",
                    n=len(checked),
                    side=side,
                    got=len(words),
                )
            lines.append(
                go.Scatter(
                    x=np.arange(1.0, len(checked) + 1),
                    y=checked,
                    name=plain(f"{side}, {name(lang)}"),
                    mode="lines+markers",
                    line={"color": css(ink), "width": 2.5, "dash": dash},
                    marker={"size": 6},
                    customdata=[[plain(word)] for word in words],
                    hovertemplate=f"<b>{side} · %{{customdata[0]}}</b>, {plain(name(lang))}<br>%{{y:.3f}}<extra></extra>",
                )
            )
    longest = max(len(values) for values in pieces.values())
    step = max(1, -(-longest // 16))
    return _figure(lines, colours, width, height, title, parameters, lang, dtick=step)
