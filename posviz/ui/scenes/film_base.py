"""A sweep of the base: the clocks, the kernel and how far it reaches, from base 100 to ten million."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import streamlit as st

from posviz import workbench
from posviz.encodings.rope import Rope
from posviz.rope_scaling import critical_dimension
from posviz.ui import blocks, save, state
from posviz.ui.canvas import turns
from posviz.ui.lang import _, labels
from posviz.ui.scenes import rotation
from posviz.ui.scenes.film_two import TOKENS

KEY = "film_base"
LENGTH = 4096  # positions on the ruler
START = 1e6  # base of B at first

sweep = lru_cache(maxsize=8)(workbench.sweep)


@dataclass(frozen=True, eq=False)
class Scene:
    """The page's RoPE as A, every base for B, where query and key stand, and which base is shown."""

    spec: Rope
    d_head: int
    home: np.ndarray
    sweep: workbench.Sweep
    m: int
    n: int
    pair: int
    notch: int

    @property
    def width(self) -> int:
        return 2 * len(self.home)

    @property
    def bound(self) -> int:
        """A's first distance with a negative kernel, 0 where none was found."""
        return workbench.context_bound(self.spec.inv_freq(self.d_head)) or 0

    @property
    def base(self) -> float:
        return float(self.sweep.bases[self.notch])


def question() -> str:
    return _("What does the base decide?")


def claim() -> str:
    return _(
        "A larger base slows every clock but the first: the kernel stays positive further out, and fewer pairs come round."
    )


def toolbar(setting: state.Setting) -> None:
    """A's base is the sidebar's, B's is swept in the picture."""


def build(setting: state.Setting) -> Scene:
    state.check()
    spec, d_head = setting.other("rope"), setting.dims.d_head
    spec.fits(setting.dims)
    home = spec.inv_freq(d_head).numpy()
    found = sweep(2 * len(home), LENGTH)
    return Scene(
        spec,
        d_head,
        home,
        found,
        state.chosen("m", LENGTH, 64),
        state.chosen("n", LENGTH, 0),
        state.chosen("pair", len(home), len(home) // 2),
        state.chosen("notch", len(found.bases), int(np.abs(np.log(found.bases / START)).argmin())),
    )


def bundle(scene: Scene) -> bytes:
    ones = np.ones(scene.width)
    found, scale = scene.sweep, 1 / scene.width
    critical = critical_dimension(scene.width, scene.spec.base, LENGTH)
    return turns.bundle(
        [
            turns.Side(f"A · base {scene.spec.base:,.12g}", scene.home, ones, ones, scale),
            turns.Side("", found.frequencies[scene.notch], ones, ones, scale),
        ],
        mode="base",
        max_position=LENGTH - 1,
        m=scene.m,
        n=scene.n,
        pair=scene.pair,
        tokens=[{"label": _(name), "sentence": "A", "position": 0} for name in TOKENS],
        bases=turns.Bases(
            found.bases,
            found.frequencies,
            found.critical_dimension,
            found.context_bound,
            scene.notch,
            workbench.PER_DECADE,
            (critical, scene.bound),
        ),
        labels=labels(turns.LABELS),
        height=576,
        alt=_("The clocks of base {a} and of a base that is swept").format(a=f"{scene.spec.base:,.12g}"),
        file="posviz-base",
    )


def show(scene: Scene) -> None:
    names = {"m": "m", "n": "n", "pair": "pair", "notch": "notch"}
    turns.show(bundle(scene), key=KEY, on_change=lambda: rotation.chosen(KEY, names))


def remark(setting: state.Setting, scene: Scene) -> None:
    blocks.note(
        _(
            "θ₁ · 3: whole turns made by the query's hand. Query and key are all ones: the score is the kernel. d_crit: dimensions that come round within {n} positions; Σ cos is followed up to {far}."
        ).format(n=f"{LENGTH:,}", far=f"{workbench.FURTHEST:,}")
    )


def proof(scene: Scene) -> list[blocks.Number]:
    found, at = scene.sweep, scene.notch
    slow = [2 * np.pi / float(w[-1]) for w in (scene.home, found.frequencies[at])]
    bounds = [scene.bound, int(found.context_bound[at])]
    said = [f"{bound:,}" if bound else f"> {workbench.FURTHEST:,}" for bound in bounds]
    fast = abs(float(found.frequencies[at][0]) - float(scene.home[0]))
    return [
        blocks.Number(
            " · ".join(said),
            _("A · B: distance at which Σ cos kω first turns negative"),
            _("B: base {n}").format(n=f"{scene.base:,.12g}"),
        ),
        blocks.Number(
            " · ".join(f"{length:,.0f}" for length in slow), _("A · B: positions for a full turn of the slowest pair")
        ),
        blocks.Number(
            blocks.compact(fast), _("frequency of the fastest pair: B minus A"), _("should be 0"), fast == 0.0
        ),
    ]


def more(scene: Scene) -> None:
    pass


def badge(setting: state.Setting) -> str:
    return _("computed from base and width alone: no weights")


def formula(scene: Scene) -> None:
    st.latex(r"\omega_i = b^{-2i/d},\qquad K(k) = \tfrac{2}{d}\sum_i \cos k\,\omega_i")
    i, d = scene.pair, scene.width
    for letter, base, omega in (
        ("A", scene.spec.base, scene.home),
        ("B", scene.base, scene.sweep.frequencies[scene.notch]),
    ):
        kernel = float(np.cos((scene.m - scene.n) * omega).mean())
        st.latex(
            rf"\text{{{letter}}}:\quad \omega_{{{i}}} = {base:.12g}^{{-{2 * i}/{d}}} = {float(omega[i]):.6g},\qquad"
            rf" K({scene.m - scene.n}) = \mathbf{{{kernel:.6f}}}"
        )


def code(setting: state.Setting, scene: Scene) -> str:
    return f"""from posviz import workbench
from posviz.rotation import inv_freq

m, n, width = {scene.m}, {scene.n}, {scene.width}
values = [float(((m - n) * inv_freq(width, base)).cos().mean()) for base in ({scene.spec.base!r}, {scene.base!r})]
bounds = [workbench.context_bound(inv_freq(width, base)) for base in ({scene.spec.base!r}, {scene.base!r})]
print(values, bounds)
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    found = scene.sweep

    def table() -> list[list[object]]:
        lines: list[list[object]] = [["base", "critical dimension", "context bound", "longest wavelength"]]
        longest = (2 * np.pi / found.frequencies[:, -1]).tolist()
        columns = (found.bases.tolist(), found.critical_dimension.tolist(), found.context_bound.tolist(), longest)
        return lines + [list(line) for line in zip(*columns, strict=True)]

    save.row(
        "base",
        component="turns",
        data=bundle(scene),
        title=question(),
        caption=f"d = {scene.width} · base {scene.spec.base:,.12g} · {scene.base:,.12g}",
        arrays=lambda: {
            "bases": found.bases,
            "frequencies": found.frequencies,
            "critical_dimension": found.critical_dimension,
            "context_bound": found.context_bound,
        },
        table=table,
    )
