"""What the heads of several models look at: every head a dot, one panel for each role."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import numbers
from posviz.figures.colours import css, palette
from posviz.figures.labels import SIZE, plain, text_width, wrapped
from posviz.figures.layout import Frame, axis, figure
from posviz.types import Refusal, Text, real_number, shown

ROW, GAP = 34, 0.035  # px of a model; between two panels, as a share of the width
TITLE = Text("What the heads look at", "各个头在看什么")
X_LABEL = Text("share of attention", "占注意力的比例")
EVEN = Text("dotted: chance, {share}", "虚线：一视同仁，{share}")


def head_roles(
    shares: Mapping[str, Mapping[str, Any]],
    chance: Mapping[str, float],
    heads: Sequence[str],
    *,
    strongest: Mapping[str, Mapping[str, Any]] | None = None,
    chosen: tuple[int, int] | None = None,
    width: int = 900,
    title: str = "",
    parameters: str = "",
    dark: bool = False,
    lang: str = "en",
) -> go.Figure:
    """Model -> role -> (n,) shares of attention, 0 to 1, of its n heads; the largest is filled and labelled.

    chance: role -> the share of a head that attends to all keys evenly. heads: the n names. strongest: model ->
    role -> the largest share in each of several trainings, drawn as a bar from the smallest to the largest.
    chosen: (model, head), counted from 0, ringed in every panel; a dot's ``customdata`` is the same pair.
    Raises :class:`posviz.Refusal`.
    """
    colours = palette(dark)
    roles, models = (list(given) if isinstance(given, Mapping) else [] for given in (chance, shares))
    if not roles or not models:
        raise Refusal(
            Text(
                "there must be at least one model and one role, got {models} and {roles}",
                "至少要有一个模型和一种作用，现在是 {models} 个模型和 {roles} 种作用",
            ),
            field="shares",
            models=len(models),
            roles=len(roles),
        )
    even = {role: real_number("chance", chance[role], 0, 1) for role in roles}
    if chosen is not None:
        _check_chosen(chosen, (len(models), len(heads)))
    left, right, height = max(map(text_width, models)) + 30, 24, ROW * len(models)
    panel = (1 - GAP * (len(roles) - 1)) / len(roles)
    traces, notes, rules, axes = [], [], [], {}
    for r, role in enumerate(roles):
        place = "x" if r == 0 else f"x{r + 1}"
        for m, model in enumerate(models):
            values = _checked(model, role, _of("shares", shares, model, role), len(heads))
            ink, end = colours.curves[m % len(colours.curves)], values.max()
            if strongest:
                each = numbers(f"{model}, {role}", _of("strongest", strongest, model, role), "(n,)")
                traces.append(_span(each, m, css(ink, 0.3)) | {"xaxis": place})
                end = max(end, each.max())
            traces.append(_dots(values, m, heads, model, role, css(ink)) | {"xaxis": place})
            traces.append(_label(values.max(), end, m, css(ink)) | {"xaxis": place})
            if chosen is not None and chosen[0] == m:
                traces.append(_ring(values[chosen[1]], m, css(colours.text)) | {"xaxis": place})
        start = r * (panel + GAP)
        axes[f"xaxis{r + 1 if r else ''}"] = axis(colours, X_LABEL(lang) if r == 0 else "", range=[-0.04, 1.44]) | {
            "domain": [start, start + panel],
            **{
                "tickvals": [0, 0.5, 1],
                "ticktext": ["0", plain("50 %"), plain("100 %")],
                "anchor": "y",
                "fixedrange": True,
            },
            **{"showgrid": True, "gridcolor": css(colours.line)},
        }
        notes.append(_head(role, start, panel * (width - left - right), css(colours.text)))
        notes.append(_even(even[role], start, lang, css(colours.quiet)))
        rules.append(_rule(even[role], place, css(colours.quiet)))
    result = figure(
        traces,
        colours,
        Frame(width - left - right, height, left=left, right=right, bottom=74),
        title=title or TITLE(lang),
        parameters=parameters,
        hovermode="closest",
        yaxis=axis(colours, range=[len(models) - 0.5, -0.5], fixedrange=True)
        | {"tickvals": list(range(len(models))), "ticktext": [plain(name) for name in models]}
        | {"tickfont": {"size": SIZE, "color": css(colours.text)}},
        shapes=rules,
        **axes,
    )
    lift = 42 + round(SIZE * 1.35) * max(note["text"].count("<br>") for note in notes)
    margin = result.layout.margin
    margin.t += lift
    result.layout.height += lift
    for note in result.layout.annotations:
        note.yshift += lift  # the line below the title makes room for the panels' heads
    for note in notes:
        result.add_annotation(note)
    return result


def _of(name: str, given: Any, model: str, role: str) -> Any:
    found = given.get(model) if isinstance(given, Mapping) else None
    if not isinstance(found, Mapping) or role not in found:
        raise Refusal(
            Text("`{name}` says nothing about {role} in {model}", "`{name}` 没有给出 {model} 的“{role}”"),
            field=name,
            name=name,
            role=role,
            model=model,
        )
    return found[role]


def _check_chosen(chosen: Any, shape: tuple[int, int]) -> None:
    good = isinstance(chosen, tuple | list) and len(chosen) == 2
    if not good or not all(isinstance(i, int | np.integer) and 0 <= i < n for i, n in zip(chosen, shape, strict=True)):
        raise Refusal(
            Text(
                "`chosen` must be (model, head) within {shape}, got {got}",
                "`chosen` 必须是 {shape} 之内的（模型、头），现在是 {got}",
            ),
            field="chosen",
            shape=str(shape),
            got=shown(chosen),
        )


def _checked(model: str, role: str, values: Any, count: int) -> np.ndarray:
    checked = numbers(f"{model}, {role}", values, "(n,)")
    if len(checked) != count:
        raise Refusal(
            Text(
                "{model} must have one share of {role} for each of the {n} heads, got {got}",
                "{model} 的 {n} 个头要各有一个“{role}”的比例，现在有 {got} 个",
            ),
            field="shares",
            model=model,
            role=role,
            n=count,
            got=len(checked),
        )
    return checked


def _span(each: np.ndarray, row: int, colour: str) -> dict[str, Any]:
    """From the smallest to the largest of several trainings."""
    return {
        **{"type": "scatter", "mode": "lines", "hoverinfo": "skip"},
        **{"x": [float(each.min()), float(each.max())], "y": [row, row], "line": {"color": colour, "width": 9}},
    }


def _dots(values: np.ndarray, row: int, heads: Sequence[str], model: str, role: str, colour: str) -> dict[str, Any]:
    large = np.arange(len(values)) == values.argmax()
    return {
        **{"type": "scatter", "mode": "markers", "x": values, "y": np.full(len(values), row, dtype=float)},
        "marker": {
            **{"size": np.where(large, 13, 9), "opacity": np.where(large, 1.0, 0.45)},
            **{"color": colour, "line": {"width": 0}},
        },
        "unselected": {"marker": {"opacity": 0.45}},  # a click shall not fade the other models
        "customdata": [[row, i] for i in range(len(values))],
        "hovertext": [plain(name) for name in heads],
        "hovertemplate": f"<b>{plain(model)} · %{{hovertext}}</b><br>{plain(role)}: %{{x:.1%}}<extra></extra>",
    }


def _label(share: float, end: float, row: int, colour: str) -> dict[str, Any]:
    """The largest share, right of everything in its row."""
    return {
        **{"type": "scatter", "mode": "text", "hoverinfo": "skip", "x": [float(end) + 0.08], "y": [row]},
        **{"text": [plain(f"{100 * share:.0f} %")], "textposition": "middle right"},
        "textfont": {"size": SIZE, "color": colour},
    }


def _ring(share: float, row: int, colour: str) -> dict[str, Any]:
    return {
        **{"type": "scatter", "mode": "markers", "hoverinfo": "skip", "x": [float(share)], "y": [row]},
        "marker": {"size": 17, "color": "rgba(0,0,0,0)", "line": {"color": colour, "width": 2}},
    }


def _head(role: str, start: float, room: float, colour: str) -> dict[str, Any]:
    return {
        "text": "<br>".join(wrapped(role, room, SIZE * 1.08)),
        "font": {"size": SIZE + 1, "color": colour, "weight": 600},
        **{"x": start, "xref": "paper", "xanchor": "left", "align": "left", "showarrow": False},
        **{"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 24},
    }


def _even(share: float, start: float, lang: str, colour: str) -> dict[str, Any]:
    return {
        "text": plain(EVEN(lang).format(share=f"{100 * share:.0f} %")),
        "font": {"size": SIZE - 1, "color": colour},
        **{"x": start, "xref": "paper", "xanchor": "left", "showarrow": False},
        **{"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 4},
    }


def _rule(share: float, place: str, colour: str) -> dict[str, Any]:
    return {
        **{"type": "line", "xref": place, "yref": "paper", "x0": share, "x1": share, "y0": 0, "y1": 1},
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
    }
