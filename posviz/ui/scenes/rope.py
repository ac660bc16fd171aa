"""RoPE workbench: one or two models, their facts, the pictures of a scaling, what in their files is odd."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from posviz import workbench
from posviz.encodings.model_rope import ModelRope
from posviz.ui import blocks, cached, models, save, state
from posviz.ui.canvas import arcs, plots
from posviz.ui.lang import _, current, named
from posviz.ui.scenes import rope_plots
from posviz.ui.scenes.rope_controls import chosen, layer_of, refused, usual_length

KEY = "rope_canvas"


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two models: letter "A" or "B", its parameter's text, the RoPE of the chosen layers, its facts."""

    letter: str
    raw: str
    model: models.Model
    layer: str
    rope: ModelRope
    facts: workbench.Facts
    unscaled: bool = False

    @property
    def title(self) -> str:
        parts = (self.model.title, self.layer, _("unscaled") if self.unscaled else "")
        return " · ".join(filter(None, parts))

    @property
    def label(self) -> str:
        return f"{self.letter} · {self.title}"


@dataclass(frozen=True, eq=False)
class Scene:
    """One or two sides at one length, and which picture is shown."""

    sides: tuple[Side, ...]
    wanted: int
    view: str


def build() -> Scene:
    refusal = refused()
    if refusal is not None:
        raise refusal.kept()
    state.check()
    found = chosen()
    ropes = {letter: model.ropes[layer_of(model)] for letter, (_raw, model) in found.items()}
    wanted = state.get("rlen") or usual_length(list(ropes.values()))
    sides = tuple(
        Side(
            letter,
            raw,
            model,
            layer_of(model),
            ropes[letter],
            cached.rope_facts(ropes[letter], ropes[letter].trained_length or wanted, wanted),
        )
        for letter, (raw, model) in found.items()
    )
    return Scene(sides, wanted, state.get("rview"))


def beside_unscaled(scene: Scene) -> Scene:
    """One model twice: A without its scaling, B with it."""
    (one,) = scene.sides
    plain = one.rope.unscaled()
    facts = cached.rope_facts(plain, one.facts.trained, scene.wanted)
    return Scene(
        (replace(one, rope=plain, facts=facts, unscaled=True), replace(one, letter="B")), scene.wanted, scene.view
    )


# ---- picture, numbers, words


def bundle(scene: Scene) -> bytes:
    return rope_plots.picture(
        scene.view,
        tuple((side.letter, side.title, side.rope, side.facts.trained) for side in scene.sides),
        scene.wanted,
        current(),
    )


def show(scene: Scene) -> None:
    data = bundle(scene)
    if scene.view == "angles":
        arcs.show(data, key=f"{KEY}_angles")
    else:
        plots.show(data, key=KEY)
    blocks.note(rope_plots.remark(scene.view))


def proof(scene: Scene) -> list[blocks.Number]:
    items = []
    for side in scene.sides:
        facts = side.facts
        # a promise only up to the length that the model was trained on or its scaling is made for
        promised = scene.wanted <= max(facts.trained, side.rope.scaling.reach() or 0)
        items.append(
            blocks.Number(
                f"{facts.unseen} / {facts.pairs}",
                _("{side}: pairs that reach angles never met in training").format(side=side.letter),
                _("should be 0") if promised else _("beyond its length"),
                facts.unseen == 0 if promised else None,
            )
        )
    both = len(scene.sides) == 2
    items.append(
        blocks.Number(
            " · ".join(_bound(side) for side in scene.sides),
            _("{side}: distance at which Σ cos kω first turns negative").format(side="A · B" if both else "A"),
            "" if both else f"L = {scene.wanted:,}",
        )
    )
    return items if both else [*items, _norm(scene)]


def _bound(side: Side) -> str:
    bound = side.facts.context_bound
    return f"{bound:,}" if bound else f"> {workbench.FURTHEST:,}"


def _norm(scene: Scene) -> blocks.Number:
    side = scene.sides[0]
    return blocks.Number(
        f"{side.facts.attention_factor:.4f}",
        _("{side}: attention factor, on cos and on sin").format(side=side.letter),
        _("scores × {square}").format(square=f"{side.facts.attention_factor**2:.4f}"),
    )


def about(scene: Scene) -> None:
    """The table of facts; beside it what the files say that is odd, and where they are from."""
    left, right = st.columns(2, gap="large")
    with left:
        rows = [[name, *(value(side) for side in scene.sides)] for name, value in _facts().items()]
        blocks.table(["", *(side.label for side in scene.sides)], rows, _("what follows from the settings"))
    found = [
        (side.letter, finding.text(current()), finding.suspicious)
        for side in scene.sides
        for finding in side.model.findings
    ]
    with right:
        blocks.caption(_("what is odd, or good to know"))
        if found:
            blocks.findings(found)
        else:
            blocks.note(_("Nothing in these settings contradicts itself."))
        for side in scene.sides:
            source = side.model.source or _("pasted settings")  # not inside the f-string: Babel would miss it
            blocks.note(named(side.letter, source))


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:,.0f}" if x < 1e12 else blocks.compact(x)


def _facts() -> dict[str, Callable[[Side], str]]:
    lang = current()
    return {
        _("head width, pairs"): lambda s: f"{s.rope.d_head}, {s.facts.pairs}",
        _("pairing"): lambda s: s.rope.pairing,
        "base": lambda s: f"{s.rope.base:,.12g}",
        _("scaling"): lambda s: _scaling_name(s.rope, lang),
        _("trained length"): lambda s: _number(s.rope.trained_length),
        _("length in the file"): lambda s: _number(s.rope.max_position_embeddings),
        _("attention factor"): lambda s: f"{s.facts.attention_factor:.4f}",
        _("pairs with a full turn in training"): lambda s: f"{int((s.facts.turns_trained >= 1).sum())}",
        _("pairs with a full turn now"): lambda s: f"{int((s.facts.turns_wanted >= 1).sum())}",
        _("critical dimension"): lambda s: str(s.facts.critical_dimension),
        _("longest wavelength"): lambda s: _number(s.facts.longest_wavelength),
        _("Σ cos kω first below 0 at"): _bound,
    }


def _scaling_name(rope: ModelRope, lang: str) -> str:
    factor = getattr(rope.scaling, "factor", None)
    parts = [rope.scaling.title(lang)]
    if factor not in (None, 1.0):
        parts.append(f"× {factor:g}")
    if rope.partial_rotary_factor < 1 or getattr(rope.scaling, "share", 1.0) < 1:
        share = min(rope.partial_rotary_factor, getattr(rope.scaling, "share", 1.0))
        parts.append(f"{100 * share:g} %")
    if rope.mrope_section:
        parts.append(f"M-RoPE {'/'.join(map(str, rope.mrope_section))}")
    return " ".join(parts)


# ---- details


def formula(scene: Scene) -> None:
    for side in scene.sides:
        rope, facts = side.rope, side.facts
        st.latex(rf"\text{{{side.letter}}}:\quad {rope.scaling.formula}")
        last = facts.pairs - 1
        plain, scaled = rope.unscaled_inv_freq(), rope.inv_freq(scene.wanted)
        st.latex(
            rf"\omega_{{{last}}} = {rope.base:g}^{{-{2 * last}/{rope.width}}} = {float(plain[last]):.6g},\quad"
            rf"\omega_{{{last}}}' = {float(scaled[last]):.6g},\quad"
            rf"\tfrac{{L\,\omega_{{{last}}}'}}{{2\pi}} = {float(facts.turns_wanted[last]):.6g}\ "
        )
        st.latex(
            rf"d_\mathrm{{crit}} = 2\left\lceil \tfrac{{{rope.width}}}{{2}}\log_{{{rope.base:g}}}"
            rf"\tfrac{{{facts.trained}}}{{2\pi}}\right\rceil = \mathbf{{{facts.critical_dimension}}}"
        )


def code(scene: Scene) -> str:
    side = scene.sides[0]
    layer = f"[{side.layer!r}]" if side.layer else ""
    settings = json.dumps(dict(side.model.config), ensure_ascii=False)
    return f"""import json
from posviz import encodings, workbench

config = json.loads({settings!r})
rope = encodings.rope_from_config(config){layer}
values = rope.inv_freq(seq_len={scene.wanted})  # (pairs,) float64 radians a position
print(rope.attention_factor(), workbench.facts(rope, {side.facts.trained}, {scene.wanted}).unseen)
"""


def arrays(scene: Scene) -> dict[str, np.ndarray]:
    """What a download of both sides holds."""
    found = {}
    for side in scene.sides:
        name = side.letter.lower()
        found[f"omega_{name}"] = side.rope.unscaled_inv_freq().numpy()
        found[f"omega_scaled_{name}"] = side.rope.inv_freq(scene.wanted).numpy()
        found[f"turns_trained_{name}"] = side.facts.turns_trained
        found[f"turns_wanted_{name}"] = side.facts.turns_wanted
    return found


def table(scene: Scene) -> list[list[object]]:
    """The same as lines: one for each side and pair."""
    lines: list[list[object]] = [["model", "pair", "omega", "omega scaled", "turns trained", "turns wanted"]]
    for side in scene.sides:
        columns = (
            side.rope.unscaled_inv_freq().tolist(),
            side.rope.inv_freq(scene.wanted).tolist(),
            side.facts.turns_trained.tolist(),
            side.facts.turns_wanted.tolist(),
        )
        lines += [[side.label, i, *line] for i, line in enumerate(zip(*columns, strict=True))]
    return lines


def downloads(scene: Scene) -> None:
    save.row(
        "rope",
        component="arcs" if scene.view == "angles" else "plots",
        data=bundle(scene),
        title=_("What happens to RoPE beyond the length it was trained on?"),
        caption=" · ".join(side.label for side in scene.sides) + f" · L = {scene.wanted:,}",
        arrays=lambda: arrays(scene),
        table=lambda: table(scene),
    )
