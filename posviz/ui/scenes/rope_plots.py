"""The pictures of the RoPE workbench, from the core's arrays: which series, axes and marks each has."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from posviz import workbench
from posviz.encodings.model_rope import ModelRope
from posviz.ui.canvas import arcs, plots
from posviz.ui.canvas.plots import Mark, Plot, Series
from posviz.ui.lang import _, current, labels, named


class Part(NamedTuple):
    """One model in a picture: letter, title, RoPE, trained length."""

    letter: str
    title: str
    rope: ModelRope
    trained: int

    @property
    def colour(self) -> str:
        return self.letter.lower()

    @property
    def label(self) -> str:
        return f"{self.letter} · {self.title}"


def remark(view: str) -> str:
    """One sentence on what to see in a picture."""
    return {
        "ratio": _(
            "1: the pair turns as in training; 1/s: it turns s times slower. Thin lines: the other methods for A's stretch."
        ),
        "waves": _(
            "Positions that a full turn takes. Above the dotted line of its training a pair never came round once."
        ),
        "angles": _(
            "Every clock is a pair, from fast to slow. Grey: angles between two tokens met in training; colour: new ones at this length."
        ),
        "kernel": _(
            "The score of two equal vectors ripples; its bound (RoFormer, section 3.4.3) falls more steadily. Columns show the lowest to the highest of up to {n} distances."
        ).format(n=workbench.SAMPLES),
        "needle": _(
            "A query looks for one equal key among random ones. Untrained on purpose: this is what turning alone does to it."
        ),
    }[view]


@lru_cache(maxsize=64)
def picture(view: str, parts: tuple[tuple[str, str, ModelRope, int], ...], wanted: int, lang: str) -> bytes:
    """The bundle of one picture in the session's language: ``plots`` for curves, ``arcs`` for angles; kept."""
    models = [Part(*part) for part in parts]
    if view == "angles":
        return _angles(models, wanted)
    made = {"ratio": _ratio, "waves": _waves, "kernel": _kernel, "needle": _needle}[view](models, wanted)
    return plots.bundle(
        made,
        name=view,
        labels=labels(plots.LABELS),
        height=376,
        alt=named(made[0].title, _(", ").join(part.label for part in models)),
        file=f"posviz-rope-{view}",
    )


def _pairs(part: Part) -> np.ndarray:
    return np.arange(part.rope.width // 2, dtype=np.float64)


def _pair_axis(models: Sequence[Part]) -> dict:
    return {
        "x_label": _("pair, from fast to slow"),
        "x_name": _("pair {x}"),
        "x_range": (-0.5, max(part.rope.width // 2 for part in models) - 0.5),
    }


def _ratio(models: Sequence[Part], wanted: int) -> list[Plot]:
    series = []
    first = models[0]
    own = {part.rope.scaling.kind for part in models}
    others = workbench.alternatives(first.rope, first.trained, wanted)
    for index, (kind, (spec, values)) in enumerate(others.items()):
        if kind not in own:
            series.append(Series(spec.title(current()), _pairs(first), values, index, dashed=True))
    for part in models:
        series.append(Series(part.label, _pairs(part), workbench.ratio(part.rope, wanted), part.colour))
    lowest = min(float(np.min(one.y)) for one in series)
    marks = []
    for part in models:
        band = part.rope.scaling.band(part.rope.width, part.rope.base)
        if band is not None:
            kept = Mark(band[0], _("{side}: kept up to here").format(side=part.letter), part.colour)
            marks += [kept, Mark(band[1], _("{side}: divided from here").format(side=part.letter), part.colour)]
    return [
        Plot(
            _("ω′/ω: how much each pair is slowed down"),
            series=series,
            y_range=(min(lowest / 1.3, 0.7), 1.35),
            y_log=True,
            y_ticks=_fractions(lowest),
            marks=marks,
            **_pair_axis(models),
        )
    ]


def _fractions(lowest: float) -> list[tuple[float, str]]:
    """1, 1/2, 1/4 ... down to the lowest value, every second where there are many."""
    count = max(1, int(np.ceil(-np.log2(min(lowest, 0.99)) - 1e-9)))
    step = 1 if count <= 8 else 2
    return [(0.5**e, str(Fraction(1, 2**e))) for e in range(0, count + 1, step)]


def _lengths(models: Sequence[Part], wanted: int, axis: str) -> list[Mark]:
    """Where training ended for each model, and the length now; the same length once."""
    trained: dict[int, list[str]] = {}
    for part in models:
        trained.setdefault(part.trained, []).append(part.letter)
    marks = [
        Mark(
            length,
            _("{sides}: trained up to {n}").format(sides=", ".join(letters), n=f"{length:,}"),
            letters[0].lower() if len(letters) == 1 else "quiet",
            axis,
        )
        for length, letters in trained.items()
    ]
    if axis == "y" and wanted not in trained:
        marks.append(Mark(wanted, _("this text: {n}").format(n=f"{wanted:,}"), "position", axis))
    return marks


def _waves(models: Sequence[Part], wanted: int) -> list[Plot]:
    series = []
    for part in models:
        before, after = (_wavelengths(w) for w in (part.rope.unscaled_inv_freq(), part.rope.inv_freq(wanted)))
        if not np.allclose(before, after, equal_nan=True):
            series.append(
                Series(_("{side}: before").format(side=part.letter), _pairs(part), before, part.colour, "rings")
            )
        series.append(Series(part.label, _pairs(part), after, part.colour, "dots"))
    top = max(float(np.nanmax(one.y)) for one in series)
    return [
        Plot(
            _("wavelength of each pair in positions, log axis"),
            series=series,
            y_range=(5.0, max(top, wanted) * 2),
            y_log=True,
            marks=_lengths(models, wanted, "y"),
            **_pair_axis(models),
        )
    ]


def _wavelengths(frequencies) -> np.ndarray:
    """(pairs,) positions a turn; NaN for a pair that rests."""
    w = frequencies.numpy()
    return np.divide(2 * np.pi, w, out=np.full_like(w, np.nan), where=w > 0)


def _distance_axis(wanted: int) -> dict:
    return {
        "x_label": _("distance, log axis"),
        "x_name": _("distance {x} to {last}"),
        "x_range": (1, max(2, wanted)),
        "x_log": True,
    }


def _kernel(models: Sequence[Part], wanted: int) -> list[Plot]:
    bands, bounds = [], []
    marks = [mark for mark in _lengths(models, wanted, "x") if mark.at <= wanted]
    for part in models:
        frequencies = part.rope.inv_freq(wanted)
        curve = workbench.kernel(frequencies, wanted)
        bands.append(Series(part.label, curve.edges, curve.low, part.colour, "band", curve.high))
        bounds.append(Series(part.label, curve.edges[:-1], workbench.bound(frequencies, wanted), part.colour))
        zero = workbench.context_bound(frequencies)
        if zero is not None and zero <= wanted:
            text = _("{side}: below 0 at {n}").format(side=part.letter, n=f"{zero:,}")
            marks.append(Mark(zero, text, part.colour))
    low = min(0.0, *(float(one.y.min()) for one in bands))
    top = max(float(one.y.max()) for one in bounds)
    axis = _distance_axis(wanted)
    return [
        Plot(
            _("(2/d) Σ cos kω: the score of two equal vectors"),
            series=bands,
            y_range=(low * 1.1 - 0.02, 1.05),
            marks=marks,
            share=1.6,
            **axis,
        ),
        Plot(
            _("(2/d) Σ |S_j|: RoFormer's bound"),
            series=bounds,
            y_range=(0.0, top * 1.05),
            legend=False,
            **axis,
        ),
    ]


def _needle(models: Sequence[Part], wanted: int) -> list[Plot]:
    series = []
    for part in models:
        after = workbench.needle(part.rope, wanted, scaled=True)
        before = workbench.needle(part.rope, wanted, scaled=False)
        same = any(len(one.y) == len(before.high) and np.allclose(one.high, before.high) for one in series)
        if not same and not np.allclose(before.high, after.high):
            text = _("{side}: before scaling").format(side=part.letter)
            series.append(Series(text, before.edges, before.low, "quiet", "band", before.high))
        series.append(Series(part.label, after.edges, after.low, part.colour, "band", after.high))
    top = max(float(one.high.max()) for one in series)
    return [
        Plot(
            _("attention weight of one matching key among {n} random ones, log axis").format(n=f"{wanted - 1:,}"),
            series=series,
            y_range=(max(float(min(one.y.min() for one in series)) / 2, 1e-9), min(top * 1.5, 1.2)),
            y_log=True,
            marks=[mark for mark in _lengths(models, wanted, "x") if mark.at <= wanted],
            **_distance_axis(wanted),
        )
    ]


def _angles(models: Sequence[Part], wanted: int) -> bytes:
    rings = []
    for part in models:
        plain, scaled = part.rope.unscaled_inv_freq(), part.rope.inv_freq(wanted)
        rings.append(
            arcs.Ring(
                part.title,
                part.trained * plain.numpy() / workbench.TURN,
                wanted * scaled.numpy() / workbench.TURN,
                np.nan_to_num(_wavelengths(plain), nan=np.inf),
                np.nan_to_num(_wavelengths(scaled), nan=np.inf),
            )
        )
    return arcs.bundle(
        rings,
        labels=labels(arcs.LABELS),
        height=376,
        alt=_("Angles met in training and new ones at {n} positions, pair by pair").format(n=f"{wanted:,}"),
        file="posviz-rope-angles",
    )
