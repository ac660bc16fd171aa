"""RoPE as clocks: one dial for each pair of dimensions, one hand for the query and one for the key."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from posviz.figures.arrays import numbers
from posviz.figures.colours import Palette, Rgb, css, mix, palette
from posviz.figures.labels import SIZE, plain
from posviz.figures.layout import Frame, axis, figure
from posviz.types import Refusal, Text, read_only

GROUPS = 16  # neighbouring pairs share a trace where there are more of them than this
ARC = 24  # straight pieces of a wedge's edge
HAND = 0.9  # of the dial's radius, which is 1; dials stand STEP_X and STEP_Y apart
STEP_X, STEP_Y = 2.5, 2.9

TITLE = Text("How RoPE turns each pair of dimensions", "RoPE 怎样旋转每一对维度")
LEGEND = Text(
    "strong hand: query{m} · faint hand: key{n} · wedge: the angle between them · from fast to slow",
    "浓色针：查询{m} · 淡色针：键{n} · 扇形：两针的夹角 · 由快到慢",
)
PAIR = Text("pair {i}", "第 {i} 对")
AT = Text(" at position {p}", "（位置 {p}）")
QUERY = Text("query", "查询")
KEY = Text("key", "键")
BETWEEN = Text("query − key", "查询 − 键")


def rotation_clock(
    angles_q: Any,
    angles_k: Any,
    *,
    m: int | None = None,
    n: int | None = None,
    title: str = "",
    parameters: str = "",
    dark: bool = False,
    lang: str = "en",
) -> go.Figure:
    """angles_q, angles_k (pairs,): by how many radians the query and the key of each pair are turned.

    Angle 0 points to the right and grows counter-clockwise; the wedge is the smaller angle between the
    hands. m, n: the two positions, for the legend. Raises :class:`posviz.Refusal`.
    """
    query, key = numbers("angles_q", angles_q, "(pairs,)"), numbers("angles_k", angles_k, "(pairs,)")
    if query.shape != key.shape:
        raise Refusal(
            Text(
                "`angles_q` and `angles_k` must have one angle for each pair, got {q} and {k}",
                "`angles_q` 和 `angles_k` 必须每对各有一个角度，现在分别是 {q} 个和 {k} 个",
            ),
            field="angles_k",
            q=len(query),
            k=len(key),
        )
    if not (np.isfinite(query).all() and np.isfinite(key).all()):
        raise Refusal(Text("angles must be finite", "角度必须是有限数"), field="angles_q")
    colours = palette(dark)
    count = len(query)
    columns = min(count, 8 if count <= 32 else 16 if count <= 128 else 32)
    rows = math.ceil(count / columns)
    centres = np.array([(i % columns * STEP_X, -(i // columns) * STEP_Y) for i in range(count)])
    unit = min(48.0, 1100 / (columns * STEP_X))  # px a radius
    width = columns * STEP_X * unit
    legend = LEGEND(lang, m="" if m is None else AT(lang, p=m), n="" if n is None else AT(lang, p=n))
    return figure(
        [*_hands(query, key, centres, colours), *_faces(query, key, centres, unit, colours, lang)],
        colours,
        Frame(width, ((rows - 1) * STEP_Y + 3.1) * unit, left=30, right=30 + max(0, 620 - width), bottom=24),
        title=title or TITLE(lang),
        parameters=" · ".join(filter(None, (parameters, legend))),
        xaxis=axis(colours, range=[-STEP_X / 2, (columns - 0.5) * STEP_X], visible=False),
        yaxis=axis(colours, range=[-(rows - 1) * STEP_Y - 1.9, 1.2], visible=False, scaleanchor="x"),
        shapes=[_dials(centres, colours)],
    )


def _hands(query: np.ndarray, key: np.ndarray, centres: np.ndarray, colours: Palette) -> list[Any]:
    """Wedges, then keys, then queries; a trace for each colour."""
    count = len(query)
    groups = np.array_split(np.arange(count), min(count, GROUPS))
    wedges, keys, queries = [], [], []
    for group in groups:
        ink = colours.pair(int(group[len(group) // 2]), count)
        wedges.append(_wedge(query[group], key[group], centres[group], ink))
        keys.append(_hand(key[group], centres[group], mix(ink, colours.background, 0.45)))
        queries.append(_hand(query[group], centres[group], ink))
    return wedges + keys + queries


def _hand(angles: np.ndarray, centres: np.ndarray, ink: Rgb) -> go.Scatter:
    """Centre, tip and a gap for each pair."""
    tips = centres + HAND * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.stack([centres, tips, np.full_like(tips, np.nan)], axis=1).reshape(-1, 2)
    x, y = read_only(points).T
    return go.Scatter(x=x, y=y, mode="lines", line={"color": css(ink), "width": 4}, hoverinfo="skip")


def _wedge(query: np.ndarray, key: np.ndarray, centres: np.ndarray, ink: Rgb) -> go.Scatter:
    """Sectors from the key's hand to the query's, the short way."""
    between = _short_way(query - key)
    arc = key[:, None] + between[:, None] * np.linspace(0, 1, ARC + 1)
    edge = centres[:, None] + 0.62 * np.stack([np.cos(arc), np.sin(arc)], axis=-1)
    middle = centres[:, None]
    gap = np.full_like(middle, np.nan)
    x, y = read_only(np.concatenate([middle, edge, middle, gap], axis=1).reshape(-1, 2)).T
    fill = {"fill": "toself", "fillcolor": css(ink, 0.24), "line": {"width": 0}}
    return go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", **fill)


def _short_way(angle: np.ndarray) -> np.ndarray:
    """The same direction, in [-pi, pi)."""
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi


def _faces(
    query: np.ndarray, key: np.ndarray, centres: np.ndarray, unit: float, colours: Palette, lang: str
) -> list[Any]:
    """The names below the dials, and what hovering over a dial says."""
    x, y = centres.T
    names = go.Scatter(
        x=x,
        y=y - 1.08,
        text=[f"θ{i}".translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")) for i in range(len(x))],
        mode="text",
        textposition="bottom center",
        textfont={"size": SIZE + 1, "color": css(colours.quiet)},
        hoverinfo="skip",
    )
    rows = ((QUERY, 1), (KEY, 2), (BETWEEN, 3))
    lines = "".join(f"<br>{plain(text(lang))} %{{customdata[{i}]:.6g}} rad" for text, i in rows)
    pair = plain(PAIR(lang, i="_")).replace("_", "%{customdata[0]}")
    faces = go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"size": 2 * unit, "color": "rgba(0,0,0,0)", "line": {"width": 0}},
        customdata=read_only(np.stack([np.arange(len(x)), query, key, query - key], axis=1)),
        hovertemplate=f"<b>{pair}</b>{lines}<extra></extra>",
    )
    return [names, faces]


def _dials(centres: np.ndarray, colours: Palette) -> dict[str, Any]:
    """One path with every circle."""
    turns = np.linspace(0, 2 * np.pi, 49)[:-1]
    path = ""
    for cx, cy in centres.tolist():
        points = (f"{cx + math.cos(t):.4f},{cy + math.sin(t):.4f}" for t in turns.tolist())
        path += "M" + "L".join(points) + "Z"
    line = {"color": css(mix(colours.text, colours.background, 0.7)), "width": 1.5}
    return {"type": "path", "path": path, "line": line, "layer": "below"}
