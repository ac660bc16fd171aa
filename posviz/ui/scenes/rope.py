"""RoPE workbench: one or two models, their facts, the pictures of a scaling, what in their files is odd."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import workbench
from posviz.encodings.known_models import known_models
from posviz.encodings.model_rope import ModelRope
from posviz.types import Refusal
from posviz.ui import blocks, cached, controls, models, save, state
from posviz.ui.canvas import arcs, plots
from posviz.ui.lang import _, current
from posviz.ui.scenes import rope_plots

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

    @property
    def title(self) -> str:
        return f"{self.model.title} · {self.layer}" if self.layer else self.model.title

    @property
    def label(self) -> str:
        return f"{self.letter} · {self.title}"


@dataclass(frozen=True, eq=False)
class Scene:
    """One or two sides at one length, and which picture is shown."""

    sides: tuple[Side, ...]
    wanted: int
    view: str


def _chosen() -> dict[str, tuple[str, models.Model]]:
    """Letter -> (the parameter's text, the model); B may be missing."""
    found = {"A": state.get("ra"), "B": state.get("rb")}
    return {letter: (raw, models.model(raw)) for letter, raw in found.items() if raw not in ("", "none")}


def _layer_of(model: models.Model) -> str:
    """The chosen layer type where the model has it, else its first."""
    layer = state.get("rlayer")
    return layer if layer in model.ropes else next(iter(model.ropes))


def _usual_length(ropes: list[ModelRope]) -> int:
    """The longest text that a model promises; four times the trained length where none promises more."""
    reach = [round(rope.scaling.reach() or rope.max_position_embeddings or 4096) for rope in ropes]
    trained = [rope.trained_length or length for rope, length in zip(ropes, reach, strict=True)]
    longest = max(reach)
    longest = longest if any(longest > length for length in trained) else 4 * longest
    return max(2, min(longest, state.LONGEST_TEXT))


def build() -> Scene:
    refusal = st.session_state.get("_rope_refused")
    if refusal is not None:
        raise refusal
    state.check()
    chosen = _chosen()
    ropes = {letter: model.ropes[_layer_of(model)] for letter, (_raw, model) in chosen.items()}
    wanted = state.get("rlen") or _usual_length(list(ropes.values()))
    sides = tuple(
        Side(
            letter,
            raw,
            model,
            _layer_of(model),
            ropes[letter],
            cached.rope_facts(ropes[letter], ropes[letter].trained_length or wanted, wanted),
        )
        for letter, (raw, model) in chosen.items()
    )
    return Scene(sides, wanted, state.get("rview"))


# ---- controls


def view_names() -> dict[str, str]:
    return {
        "ratio": "ω′/ω",
        "waves": _("wavelength"),
        "angles": _("angles"),
        "kernel": _("kernel"),
        "needle": _("needle"),
    }


def toolbar() -> None:
    controls.pick("rview", _("picture"), view_names(), collapsed=True)


def choosers() -> None:
    """The two models and the length, in one row; below the header, above the picture."""
    layers = _layers()
    a, b, length, *rest = st.columns([4, 4, 2, 2] if layers else [5, 5, 3], vertical_alignment="bottom")
    with a:
        _chooser("A", "ra")
    with b:
        _chooser("B", "rb")
    with length:
        _length()
    if layers:
        with rest[0]:
            names = {"full_attention": _("full attention"), "sliding_attention": _("sliding window")}
            controls.pick("rlayer", _("layers"), {name: names.get(name, name) for name in layers}, style="select")


def _chooser(letter: str, name: str) -> None:
    raw = state.raw(name)
    names = {key: model.title for key, model in known_models().items()}
    if name == "rb":
        names = {"none": _("no second model")} | names
        raw = raw or "none"
    if raw not in names:
        names = {raw: _("pasted settings")} | names
    row = st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False)
    side = letter.lower()
    row.html(f'<div class="pv-side pv-{side}"><span class="pv-dot"></span>{letter}</div>', width="content")
    with row:
        key = f"w_{name}"
        st.session_state[key] = raw
        st.selectbox(
            _("model {side}").format(side=letter),
            list(names),
            format_func=lambda value: names.get(value, str(value)),
            key=key,
            label_visibility="collapsed",
            on_change=_choose,
            args=(name, key),
        )
        with st.popover(_("paste"), help=_("Paste or upload a model's config.json.")):
            _paste(name)


def _choose(name: str, key: str) -> None:
    st.session_state.pop("_rope_refused", None)
    value = st.session_state[key]
    if value is not None:
        state.put(name, value)


def _paste(name: str) -> None:
    text_key, file_key = f"w_{name}_text", f"w_{name}_file"
    st.text_area(
        _("config.json: only what concerns RoPE is read, and stays in the link"),
        key=text_key,
        height=220,
        max_chars=200_000,
        placeholder='{"head_dim": 128, "rope_theta": 10000.0, "rope_scaling": {…}}',
        on_change=_take,
        args=(name, lambda: st.session_state[text_key]),
    )
    st.file_uploader(
        _("or upload it"),
        type="json",
        key=file_key,
        max_upload_size=1,
        on_change=_take,
        args=(name, lambda: st.session_state[file_key].getvalue() if st.session_state[file_key] else ""),
    )


def _take(name: str, text: Callable[[], str | bytes]) -> None:
    """A pasted or uploaded file becomes the parameter; what cannot be read is said where the picture would be."""
    st.session_state.pop("_rope_refused", None)
    given = text()
    if not given:
        return
    try:
        state.put(name, models.from_file(given))
    except Refusal as refusal:
        st.session_state["_rope_refused"] = refusal


def _length() -> None:
    try:
        fallback = _usual_length([model.ropes[_layer_of(model)] for _raw, model in _chosen().values()])
    except Refusal:
        fallback = 4096
    controls.number("rlen", _("text length"), step=1024, fallback=fallback)


def _layers() -> list[str]:
    """The layer types of the chosen models, where one has several."""
    try:
        found = [layer for _raw, model in _chosen().values() for layer in model.ropes if layer]
    except Refusal:
        return []
    return list(dict.fromkeys(found))


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
            _("in a text of {n}").format(n=f"{scene.wanted:,}"),
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
            blocks.note(f"{side.letter}: {side.model.source or _('pasted settings')}")


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


def downloads(scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        found = {}
        for side in scene.sides:
            name = side.letter.lower()
            found[f"omega_{name}"] = side.rope.unscaled_inv_freq().numpy()
            found[f"omega_scaled_{name}"] = side.rope.inv_freq(scene.wanted).numpy()
            found[f"turns_trained_{name}"] = side.facts.turns_trained
            found[f"turns_wanted_{name}"] = side.facts.turns_wanted
        return found

    def table() -> list[list[object]]:
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

    save.row(
        "rope",
        component="arcs" if scene.view == "angles" else "plots",
        data=bundle(scene),
        title=_("What happens to RoPE beyond the length it was trained on?"),
        caption=" · ".join(side.label for side in scene.sides) + f" · L = {scene.wanted:,}",
        arrays=arrays,
        table=table,
    )
