"""The controls of the RoPE workbench: two models (known, pasted or uploaded), the layers, the length, the picture."""

from collections.abc import Callable

import streamlit as st

from posviz.encodings.known_models import known_models
from posviz.encodings.model_rope import ModelRope
from posviz.types import Refusal
from posviz.ui import controls, models, params, state
from posviz.ui.lang import _


def chosen() -> dict[str, tuple[str, models.Model]]:
    """Letter -> (the parameter's text, the model); B may be missing."""
    found = {"A": state.get("ra"), "B": state.get("rb")}
    return {letter: (raw, models.model(raw)) for letter, raw in found.items() if raw not in ("", "none")}


def layer_of(model: models.Model) -> str:
    """The chosen layer type where the model has it, else its first."""
    layer = state.get("rlayer")
    return layer if layer in model.ropes else next(iter(model.ropes))


def usual_length(ropes: list[ModelRope]) -> int:
    """The longest text that a model promises; four times the trained length where none promises more."""
    reach = [round(rope.scaling.reach() or rope.max_position_embeddings or 4096) for rope in ropes]
    trained = [rope.trained_length or length for rope, length in zip(ropes, reach, strict=True)]
    longest = max(reach)
    longest = longest if any(longest > length for length in trained) else 4 * longest
    return max(2, min(longest, params.LONGEST_TEXT))


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
    a, b, length, *rest = st.columns([4, 4, 2, 2] if layers else [10, 10, 5], vertical_alignment="bottom")
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
        st.session_state["_rope_refused"] = refusal.kept()


def refused() -> Refusal | None:
    """Why what was pasted or uploaded cannot be read, as long as it stands in its box."""
    if not any(st.session_state.get(f"w_{name}_{kind}") for name in ("ra", "rb") for kind in ("text", "file")):
        st.session_state.pop("_rope_refused", None)
    return st.session_state.get("_rope_refused")


def _length() -> None:
    try:
        fallback = usual_length([model.ropes[layer_of(model)] for _raw, model in chosen().values()])
    except Refusal:
        fallback = 4096
    controls.number("rlen", _("text length"), step=1024, fallback=fallback)


def _layers() -> list[str]:
    """The layer types of the chosen models, where one has several."""
    try:
        found = [layer for _raw, model in chosen().values() for layer in model.ropes if layer]
    except Refusal:
        return []
    return list(dict.fromkeys(found))
