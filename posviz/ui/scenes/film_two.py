"""Two scalings at the same positions: where each one's clocks reach angles that training never showed."""

import json

import numpy as np
import streamlit as st

from posviz.ui import blocks, save, state
from posviz.ui.canvas import turns
from posviz.ui.lang import N_, _, labels
from posviz.ui.scenes import rope, rope_controls, rotation

KEY = "film_two"
TOKENS = (N_("query"), N_("key"))


def question() -> str:
    return _("What does a scaling do to the clocks?")


def claim() -> str:
    return _("Beyond the trained length slow hands reach angles they never met (red); a scaling slows just those.")


def toolbar(setting: state.Setting) -> None:
    """The models have a row of their own, see ``choosers``."""


def choosers() -> None:
    rope_controls.choosers()


def build(setting: state.Setting) -> rope.Scene:
    """Both models, or one model without and with its scaling."""
    scene = rope.build()
    return scene if len(scene.sides) == 2 else rope.beside_unscaled(scene)


def side(one: rope.Side, wanted: int) -> turns.Side:
    """A model's clocks; query and key are all ones, so that the score is the kernel, the attention factor included."""
    omega = one.rope.inv_freq(wanted).numpy()
    ones = np.ones(2 * len(omega))
    scale = one.rope.attention_factor() ** 2 / len(ones)
    return turns.Side(one.label, omega, ones, ones, scale, met=one.facts.turns_trained)


def places(scene: rope.Scene) -> tuple[int, int, int]:
    """m, n and the pair: the query at the end of what was trained, and A's first pair that goes beyond, if one does."""
    last = scene.wanted - 1
    facts = scene.sides[0].facts
    pairs = max(s.facts.pairs for s in scene.sides)
    beyond = np.flatnonzero((facts.turns_trained < 1) & (facts.turns_wanted > facts.turns_trained))
    return (
        state.chosen("m", last + 1, facts.trained),
        state.chosen("n", last + 1, 0),
        state.chosen("pair", pairs, int(beyond[0]) if len(beyond) else 0),
    )


def bundle(scene: rope.Scene) -> bytes:
    m, n, pair = places(scene)
    return turns.bundle(
        [side(one, scene.wanted) for one in scene.sides],
        mode="two",
        max_position=scene.wanted - 1,
        m=m,
        n=n,
        pair=pair,
        tokens=[{"label": _(name), "sentence": "A", "position": 0} for name in TOKENS],
        labels=labels(turns.LABELS),
        trained=min(one.facts.trained for one in scene.sides),
        height=540,
        alt=_("The clocks of {a} and of {b} at the same positions").format(
            a=scene.sides[0].title, b=scene.sides[1].title
        ),
        file="posviz-scalings",
    )


def show(scene: rope.Scene) -> None:
    turns.show(
        bundle(scene),
        key=KEY,
        on_change=lambda: rotation.chosen(KEY, {"m": "m", "n": "n", "pair": "pair"}),
    )


def remark(setting: state.Setting, scene: rope.Scene) -> None:
    blocks.note(
        _(
            "Grey rim and grey line: what training met. A tinted face has come round; a disc turns too fast to be seen. Query and key are all ones: the score is the kernel."
        )
    )


def proof(scene: rope.Scene) -> list[blocks.Number]:
    return rope.proof(scene)


def more(scene: rope.Scene) -> None:
    pass


def badge(setting: state.Setting) -> str:
    return _("computed from config.json alone: no weights")


def formula(scene: rope.Scene) -> None:
    m, _n, pair = places(scene)
    for one in scene.sides:
        st.latex(rf"\text{{{one.letter}}}:\quad {one.rope.scaling.formula}")
        i = min(pair, one.facts.pairs - 1)
        omega = float(one.rope.inv_freq(scene.wanted)[i])
        st.latex(
            rf"\omega_{{{i}}}' = {omega:.6g},\quad m\,\omega_{{{i}}}'/2\pi = {m} \cdot {omega:.6g} / 2\pi"
            rf" = \mathbf{{{m * omega / (2 * np.pi):.6f}}}\ \text{{({one.letter})}}"
        )


def code(setting: state.Setting, scene: rope.Scene) -> str:
    m, n, _pair = places(scene)
    lines = [
        f"encodings.rope_from_config(json.loads({json.dumps(dict(one.model.config), ensure_ascii=False)!r}))"
        f"{f'[{one.layer!r}]' if one.layer else ''}{'.unscaled()' if one.unscaled else ''},"
        for one in scene.sides
    ]
    return f"""import json
from posviz import encodings

ropes = [
    {lines[0]}
    {lines[1]}
]
m, n = {m}, {n}
# two equal vectors, one at m and one at n: the mean of cos (m - n) w, times the attention factor squared
values = [
    float(((m - n) * rope.inv_freq(seq_len={scene.wanted})).cos().mean()) * rope.attention_factor() ** 2 for rope in ropes
]
print(values)
"""


def downloads(setting: state.Setting, scene: rope.Scene) -> None:
    save.row(
        "scalings",
        component="turns",
        data=bundle(scene),
        title=question(),
        caption=" · ".join(one.label for one in scene.sides) + f" · L = {scene.wanted:,}",
        arrays=lambda: rope.arrays(scene),
        table=lambda: rope.table(scene),
    )
