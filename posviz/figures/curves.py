"""Similarity against distance, one curve for each encoding."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import numbers
from posviz.figures.colours import Palette, Rgb, css, palette
from posviz.figures.labels import SIZE, plain
from posviz.figures.layout import Frame, axis, figure
from posviz.types import Refusal, Text, read_only, shown

WIDTH, HEIGHT = 900, 420
DASHES = ("solid", "dash", "dot", "dashdot")
X_LABEL = Text("distance k", "距离 k")
Y_LABEL = Text("similarity", "相似度")
TITLE = Text("Similarity against distance", "相似度随距离的变化")
RISES = Text("rises at {list} ({count} of {total})", "在 {list} 处上升（{total} 步中有 {count} 步）")
NEVER = Text("never rises", "从不上升")


class Curve(NamedTuple):
    """distances, mean, spread: (n,) float64."""

    distances: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def similarity_curves(
    curves: Mapping[str, tuple[Any, Any, Any]],
    *,
    x_label: str = "",
    y_label: str = "",
    title: str = "",
    dark: bool = False,
    parameters: str = "",
    lang: str = "en",
) -> go.Figure:
    """Curves name -> (distances, mean, spread), each (n,), with a band of mean ± spread.

    Where a curve rises from one distance >= 0 to the next it is drawn broad, and the legend counts
    those steps: similarity is said to fall with distance. distances must increase; a mean that is not
    finite leaves a gap. x_label, y_label, title: the common words in ``lang`` ("en" or "zh") where empty.
    Raises :class:`posviz.Refusal`.
    """
    if not isinstance(curves, Mapping) or not curves:
        got = shown(type(curves).__name__) if not isinstance(curves, Mapping) else Text("none", "零条")
        raise Refusal(
            Text(
                "`curves` must be a mapping name -> (distances, mean, spread) with at least one curve, got {got}",
                "`curves` 必须是 名称 -> (distances, mean, spread) 的映射，至少一条曲线，现在是 {got}",
            ),
            field="curves",
            got=got,
        )
    colours = palette(dark)
    checked = {str(name): _checked(str(name), curve) for name, curve in curves.items()}
    bands, lines = [], []
    for i, (name, curve) in enumerate(checked.items()):
        colour, dash = colours.curves[i % len(colours.curves)], DASHES[i % len(DASHES)]
        bands += _band(name, curve, colour, 0.22 if dark else 0.14)
        lines += _lines(name, curve, colour, dash, x_label or X_LABEL(lang), lang)
    legend = 26 * len(checked)
    return figure(
        [*bands, *lines],
        colours,
        Frame(WIDTH, HEIGHT, left=96, right=30, bottom=86 + legend),
        title=title or TITLE(lang),
        parameters=parameters,
        showlegend=True,
        legend=_legend(colours),
        hovermode="closest",
        xaxis=axis(colours, x_label or X_LABEL(lang), showline=True, linecolor=css(colours.line), ticks="outside"),
        yaxis=axis(colours, y_label or Y_LABEL(lang), range=_range(checked.values()))
        | {"showgrid": True, "gridcolor": css(colours.line)}
        | {"zeroline": True, "zerolinecolor": css(colours.quiet), "zerolinewidth": 1},
    )


def _checked(name: str, curve: Sequence[Any]) -> Curve:
    try:
        parts = tuple(curve)
    except TypeError:
        parts = ()
    if len(parts) != 3:
        raise Refusal(
            Text(
                "a curve must be (distances, mean, spread), got {got} parts for {name}",
                "一条曲线必须是 (distances, mean, spread)，{name} 有 {got} 项",
            ),
            field="curves",
            name=shown(name),
            got=len(parts),
        )
    fields = ("distances", "mean", "spread")
    arrays = [numbers(field, part, "(n,)") for field, part in zip(fields, parts, strict=True)]
    if len({len(array) for array in arrays}) != 1:
        raise Refusal(
            Text(
                "distances, mean and spread must be equally long, got {got} for {name}",
                "distances、mean、spread 必须一样长，{name} 的长度是 {got}",
            ),
            field="curves",
            name=shown(name),
            got=", ".join(str(len(array)) for array in arrays),
        )
    result = Curve(*arrays)
    if not (np.diff(result.distances) > 0).all() or not np.isfinite(result.distances).all():
        raise Refusal(
            Text("the distances of {name} must be finite and increase", "{name} 的 distances 必须有限并且递增"),
            field="curves",
            name=shown(name),
        )
    if (result.spread < 0).any():
        raise Refusal(
            Text("the spread of {name} must not be negative, got {got}", "{name} 的 spread 不能是负数，现在是 {got}"),
            field="curves",
            name=shown(name),
            got=f"{result.spread.min():.6g}",
        )
    return result


def _range(curves: Iterable[Curve]) -> list[float]:
    """What all curves and bands take, zero, and a little room."""
    edges = [mean + side * spread for _, mean, spread in curves for side in (-1, 1)]
    values = np.concatenate([*edges, [0.0]])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.05 * (high - low) or 1.0
    return [low - room, high + room]


def _rises(curve: Curve, tolerance: float = 1e-9) -> tuple[np.ndarray, int]:
    """Indices from which the curve rises at distances >= 0, and how many steps there are."""
    size = np.nanmax(np.abs(curve.mean), initial=0.0)
    forward = curve.distances[:-1] >= 0
    with np.errstate(invalid="ignore"):  # a gap does not rise
        up = np.diff(curve.mean) > tolerance * size
    return np.flatnonzero(up & forward), int(forward.sum())


def _band(name: str, curve: Curve, colour: Rgb, alpha: float) -> list[Any]:
    """mean - spread .. mean + spread; nothing where every spread is zero."""
    if not curve.spread.any():
        return []
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    edge |= {"x": curve.distances, "legendgroup": plain(name)}
    return [
        go.Scatter(y=read_only(curve.mean - curve.spread), **edge),
        go.Scatter(y=read_only(curve.mean + curve.spread), fill="tonexty", fillcolor=css(colour, alpha), **edge),
    ]


def _lines(name: str, curve: Curve, colour: Rgb, dash: str, x_label: str, lang: str) -> list[Any]:
    """The broad strokes where the curve rises, and the curve itself with its legend."""
    starts, steps = _rises(curve)
    group = {"legendgroup": plain(name), "mode": "lines"}
    result = []
    if len(starts):
        ends = np.stack([starts, starts + 1], axis=1)
        x, y = (np.pad(part[ends], ((0, 0), (0, 1)), constant_values=np.nan).ravel() for part in curve[:2])
        broad = {"color": css(colour, 0.3), "width": 8}
        result.append(go.Scatter(x=x, y=y, line=broad, hoverinfo="skip", showlegend=False, **group))
    line = go.Scatter(
        x=curve.distances,
        y=curve.mean,
        customdata=curve.spread,
        name=f"{plain(name)}  <span style='color:{css(colour)}'>{plain(_said(curve, starts, steps, lang))}</span>",
        line={"color": css(colour), "width": 2.5, "dash": dash},
        hovertemplate=(
            f"<b>{plain(name)}</b><br>{plain(x_label)} %{{x}}<br>%{{y:.6g}} ± %{{customdata:.3g}}<extra></extra>"
        ),
        **group,
    )
    return [*result, line]


def _said(curve: Curve, starts: np.ndarray, steps: int, lang: str) -> str:
    if not len(starts):
        return NEVER(lang)
    first = [f"{curve.distances[i]:g}" for i in starts[:3]]
    more = len(starts) > len(first)
    some = "、".join(first) + "…" * more if lang == "zh" else ", ".join(first + ["…"] * more)
    return RISES(lang, list=some, count=len(starts), total=steps)


def _legend(colours: Palette) -> dict[str, Any]:
    font = {"size": SIZE, "color": css(colours.text)}
    place = {"x": 0, "xanchor": "left", "y": -72 / HEIGHT, "yanchor": "top"}
    return {"font": font, "bgcolor": "rgba(0,0,0,0)", "itemwidth": 50, "traceorder": "normal", **place}
