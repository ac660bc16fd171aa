"""The four small pictures of the Tables page: by distance, lengths, principal components, periods."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from posviz.ui.canvas import plots
from posviz.ui.canvas.plots import Mark, Plot, Series
from posviz.ui.lang import _, labels, named
from posviz.ui.scenes.tables import Scene
from posviz.ui.table_sources import ROWS

HEIGHT = 280
HALF = 0.5  # of a dimension's variance: a period that explains less is drawn hollow


def show(scene: Scene) -> None:
    made: tuple[Callable[[Scene], Plot], ...] = (_by_distance, _lengths, _components, _periods)
    for pair in (made[:2], made[2:]):
        for column, make in zip(st.columns(2), pair, strict=True):
            with column:
                name = make.__name__.strip("_")
                plot = make(scene)
                data = plots.bundle(
                    [plot],
                    name=name,
                    labels=labels(plots.LABELS),
                    height=HEIGHT,
                    alt=named(plot.title, scene.chosen.title),
                    file=f"posviz-table-{name.replace('_', '-')}",
                )
                plots.show(data, key=f"tables_{name}")


def _range(*arrays: np.ndarray) -> tuple[float, float]:
    low, high = min(float(a.min()) for a in arrays), max(float(a.max()) for a in arrays)
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return low - room, high + room


def _by_distance(scene: Scene) -> Plot:
    found = scene.found.distances
    k = np.arange(len(found.mean), dtype=np.float64)
    low, high = found.mean - found.spread, found.mean + found.spread
    usual = scene.found.neighbours.usual
    return Plot(
        _("how alike rows are, by their distance"),
        x_label=_("distance in rows"),
        x_name=_("distance {x}"),
        series=[
            Series(_("mean ± spread"), np.arange(len(k) + 1) - 0.5, low, "quiet", "band", high),
            Series(_("mean cosine"), k, found.mean, "position"),
        ],
        marks=[Mark(float(usual), _("nearest row, most often: {k}").format(k=usual), "b")],
        x_range=(-0.5, len(k) - 0.5),
        y_range=_range(low, high),
    )


def _lengths(scene: Scene) -> Plot:
    found, start = scene.found.norms, scene.chosen.first_row
    at = np.arange(len(found.values), dtype=np.float64) + start
    series = [Series(_("length of a row"), at, found.values, "position", "dots")]
    if len(found.outliers):
        series.append(
            Series(_("unusual"), found.outliers.astype(np.float64) + start, found.values[found.outliers], "b", "rings")
        )
    return Plot(
        _("how long each row is"),
        x_label=_(ROWS[scene.chosen.what]),
        x_name=_("row {x}"),
        series=series,
        marks=[Mark(found.median, _("median"), "quiet", "y")],
        x_range=(start - 0.5, start + len(at) - 0.5),
        y_range=_range(found.values),
    )


def _components(scene: Scene) -> Plot:
    found, start = scene.found.components, scene.chosen.first_row
    at = np.arange(len(found.scores), dtype=np.float64) + start
    return Plot(
        _("the rows along their principal components"),
        x_label=_(ROWS[scene.chosen.what]),
        x_name=_("row {x}"),
        series=[
            Series(_("component {n}: {share} %").format(n=c + 1, share=f"{100 * share:.0f}"), at, found.scores[:, c], c)
            for c, share in enumerate(found.shares)
        ],
        x_range=(start - 0.5, start + len(at) - 0.5),
        y_range=_range(found.scores),
    )


def _periods(scene: Scene) -> Plot:
    found, rows = scene.found.waves, len(scene.values)
    at = np.arange(len(found.periods), dtype=np.float64)
    cols = len(at)
    sinusoidal = 2 * np.pi * 10_000.0 ** (2 * (np.arange(cols) // 2) / (cols + cols % 2))
    clear = found.explained >= HALF
    series = [
        Series(_("sinusoids, base 10000"), at, np.where(sinusoidal <= 2 * rows, sinusoidal, np.nan), "quiet"),
        Series(_("explains half or more"), at[clear], found.periods[clear], "position", "dots"),
        Series(_("less than half"), at[~clear], found.periods[~clear], "b", "rings"),
    ]
    return Plot(
        _("the period of each dimension's best sinusoid, log axis"),
        x_label=_("head") if scene.chosen.what == "bucket" else _("dimension"),
        x_name=_("dimension {x}"),
        series=[one for one in series if len(one.x)],
        x_range=(-0.5, cols - 0.5),
        y_range=(1.7, 2.6 * rows),
        y_log=True,
    )
