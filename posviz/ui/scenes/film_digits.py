"""The precision collapse: positions or frequencies in bfloat16 beside float64, tick by tick."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import streamlit as st
import torch

from posviz import precision
from posviz.encodings.rope import Rope
from posviz.ui import blocks, controls, save, shell, state
from posviz.ui.canvas import plots, turns
from posviz.ui.canvas.plots import Plot, Series
from posviz.ui.lang import _, labels
from posviz.ui.scenes import rotation

KEY = "film_digits"
DTYPE = "bfloat16"
LENGTH = 2048  # positions on the ruler, or max_len where that is more
START = (248, 245)  # query and key: an odd distance, just before position ids begin to collide
APART = (1000, 0)  # where the error grows with the distance


@dataclass(frozen=True, eq=False)
class Scene:
    """Queries and keys as in one rotation, what is rounded, and each pair's first visible error for each rounding."""

    one: rotation.Scene
    rounded: str
    first: dict[str, np.ndarray]

    @property
    def narrow(self) -> np.ndarray:
        return precision.rounded(self.one.omega, torch.bfloat16)

    @property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.one.q[self.one.query], self.one.k[self.one.key]


def names() -> dict[str, str]:
    return {
        "positions": _("positions in bfloat16"),
        "frequencies": _("inv_freq in bfloat16"),
        "angle": _("both, and the angle"),
    }


def question() -> str:
    return _("What do eight bits do to positions?")


def claim() -> str:
    return _(
        "bfloat16 counts exactly up to 256; beyond, neighbours share a position. A rounded inv_freq drifts at once."
    )


def toolbar(setting: state.Setting) -> None:
    rotation.head(setting)
    controls.pick("rounded", _("rounded"), names(), style="select", collapsed=True, width=230)


def build(setting: state.Setting) -> Scene:
    rounded = state.get("rounded")
    one = rotation.build(setting, LENGTH, APART if rounded == "frequencies" else START)
    first = {what: first_seen(one.spec, one.q.shape[1], one.last + 1, what) for what in precision.ROUNDED}
    return Scene(one, rounded, first)


@lru_cache(maxsize=32)
def first_seen(spec: Rope, d_head: int, length: int, what: str) -> np.ndarray:
    errors = precision.angle_errors(spec.inv_freq(d_head).numpy(), length, DTYPE, what)
    return precision.first_seen(errors)


def bundle(scene: Scene) -> bytes:
    one = scene.one
    q, k = scene.vectors
    scale = one.spec.scale(len(q))
    tokens = rotation.tokens_of(one)
    return turns.bundle(
        [
            turns.Side("A · float64", one.omega, q, k, scale),
            turns.Side(f"B · {names()[scene.rounded]}", one.omega, q, k, scale),
        ],
        mode="digits",
        max_position=one.last,
        m=one.m,
        n=one.n,
        pair=one.pair,
        tokens=[tokens[one.query], tokens[one.key]],
        pairing=one.spec.pairing,
        narrow=scene.narrow,
        rounded=scene.rounded,
        labels=labels(turns.LABELS),
        height=576,
        alt=_("The clocks in float64 and with numbers rounded to bfloat16, at the same positions"),
        file="posviz-digits",
    )


def show(scene: Scene) -> None:
    key = f"{KEY}_{scene.rounded}"  # each begins with what shows its error
    turns.show(bundle(scene), key=key, on_change=lambda: rotation.chosen(key, {"m": "m", "n": "n", "pair": "pair"}))


def remark(setting: state.Setting, scene: Scene) -> None:
    blocks.note(
        _(
            "Red: wrong by more than {limit} rad. θ₁ · 15: whole turns made by the query's hand. Only angles are rounded; sines, products and sums are in float64."
        ).format(limit=precision.SEEN)
    )


def proof(scene: Scene) -> list[blocks.Number]:
    one, first = scene.one, scene.first[scene.rounded]
    q, k = scene.vectors
    wrong = np.flatnonzero(first >= 0)
    pair = int(wrong[first[wrong].argmin()]) if len(wrong) else None
    error = precision.score_drift(q, k, one.omega, one.spec.pairing, (one.m, one.n), DTYPE, scene.rounded)
    return [
        blocks.Number(
            "–" if pair is None else f"{first[pair]:,}",
            _("first position with a pair that is visibly wrong"),
            "" if pair is None else _("pair {i}").format(i=pair),
        ),
        blocks.Number(
            f"{len(wrong)} / {len(first)}",
            _("pairs that are visibly wrong somewhere up to {n}").format(n=f"{one.last:,}"),
        ),
        blocks.Number(
            blocks.compact(error * one.spec.scale(len(q))),
            _("score in bfloat16 minus float64"),
            f"m = {one.m:,}, n = {one.n:,}",
        ),
    ]


def more(scene: Scene) -> None:
    """Where each pair is first wrong, for each rounding."""
    pairs = len(scene.one.omega)
    at = np.arange(pairs, dtype=np.float64)
    colours = {"positions": "a", "frequencies": "b", "angle": "quiet"}
    series = [
        Series(name, at, np.where(scene.first[what] >= 0, scene.first[what], np.nan), colours[what], style)
        for (what, name), style in zip(names().items(), ("dots", "dots", "rings"), strict=True)
    ]
    plot = Plot(
        _("position at which each pair is first wrong by more than {limit} rad").format(limit=precision.SEEN),
        x_label=_("pair, from fast to slow"),
        x_name=_("pair {x}"),
        series=series,
        x_range=(-0.5, pairs - 0.5),
        y_range=(1.0, 1.4 * (scene.one.last + 1)),
        y_log=True,
    )
    data = plots.bundle(
        [plot], name="wrong", labels=labels(plots.LABELS), height=300, alt=plot.title, file="posviz-first-wrong"
    )
    plots.show(data, key="film_wrong")


def badge(setting: state.Setting) -> str:
    return shell.untrained(setting)


def formula(scene: Scene) -> None:
    one = scene.one
    i = one.pair
    exact = one.m * float(one.omega[i])
    narrow = precision.rounded_angles(torch.tensor([one.m]), torch.tensor(one.omega), DTYPE, scene.rounded)
    said = {"positions": r"\mathrm{bf16}(m)\,\theta_i", "frequencies": r"m\;\mathrm{bf16}(\theta_i)"}
    rounded = said.get(scene.rounded, r"\mathrm{bf16}(\mathrm{bf16}(m)\,\mathrm{bf16}(\theta_i))")
    st.latex(
        rf"m\,\theta_{{{i}}} = {one.m} \cdot {float(one.omega[i]):.6g} = {exact:.6f},\qquad"
        rf" {rounded} = {float(narrow[0, i]):.6f},\qquad \Delta = \mathbf{{{float(narrow[0, i]) - exact:+.6f}}}"
    )
    st.latex(r"\mathrm{bf16}:\ 8 \text{ bits},\quad 256 = 2^8 \mapsto 256,\quad 257 \mapsto 256,\quad 259 \mapsto 260")


def code(setting: state.Setting, scene: Scene) -> str:
    one = scene.one
    return f"""import torch
from posviz import precision
from posviz.rotation import inv_freq

omega = inv_freq({2 * len(one.omega)}, {one.spec.base!r})
errors = precision.angle_errors(omega.numpy(), {one.last + 1}, "{DTYPE}", {scene.rounded!r})  # (positions, pairs) radians
values = precision.first_seen(errors)  # where each pair is first wrong by more than {precision.SEEN} rad, -1: nowhere
print(values, torch.tensor([255, 256, 257, 258, 259]).to(torch.bfloat16))
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    one = scene.one

    def arrays() -> dict[str, np.ndarray]:
        found = {"omega": one.omega, "omega_bfloat16": scene.narrow}
        return found | {f"first_{what}": first for what, first in scene.first.items()}

    def table() -> list[list[object]]:
        columns = (one.omega.tolist(), scene.narrow.tolist(), *(scene.first[w].tolist() for w in precision.ROUNDED))
        lines = [[i, *line] for i, line in enumerate(zip(*columns, strict=True))]
        return [["pair", "theta", "theta bfloat16", *(f"first wrong: {what}" for what in precision.ROUNDED)], *lines]

    save.row(
        "digits",
        component="turns",
        data=bundle(scene),
        title=question(),
        caption=f"{names()[scene.rounded]} · base {one.spec.base:g} · d_head {one.q.shape[1]}",
        arrays=arrays,
        table=table,
    )
