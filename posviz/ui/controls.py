"""The visible controls. Each writes into its URL parameter and is set from it on every run."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from posviz import encodings
from posviz.types import LANGUAGES, MAX_HEADS, Refusal
from posviz.ui import params, state
from posviz.ui.lang import NAMES, _, current

# The groups of shared controls in the sidebar; a page names those that change it (shell.PAGES).
PARTS = ("sentences", "unit", "encoding", "sizes", "base", "more")

# (A, B, unit): two reversals, the same words twice, 20 characters with the lines exchanged, English.
PRESETS = (
    ("我爱你", "你爱我", "character"),
    ("狗咬人", "人咬狗", "character"),
    ("我知道你知道", "你知道我知道", "character"),
    ("春眠不觉晓处处闻啼鸟夜来风雨声花落知多少", "夜来风雨声花落知多少春眠不觉晓处处闻啼鸟", "character"),
    ("dog bites man", "man bites dog", "word"),
    ("the cat that the dog saw ran", "the dog that the cat saw ran", "word"),
)


def _commit(name: str, key: str, convert: Callable[[Any], Any] = lambda v: v) -> None:
    """The callback of a visible control: its value becomes the parameter's text."""
    value = st.session_state[key]
    if value is not None:
        state.put(name, convert(value))


def _value(param: params.Param, text: str) -> Any:
    """What a visible control shows: the parameter's value, or its default while the text means nothing."""
    try:
        return param.read(param.name, text)
    except Refusal:
        return param.read(param.name, param.default)


def pick(
    name: str,
    label: str,
    options: Mapping[Any, str],
    *,
    style: str = "segments",
    help: str | None = None,
    at: str = "",
    collapsed: bool = False,
    shown: Any = None,
    width: int | str | None = None,
) -> Any:
    """One of a few named options: value -> label. style: "segments" or "select". at: sets a second control
    apart. shown: what it shows where the parameter says something else."""
    param = params.find(name)
    key = f"w_{name}{at}"
    value = _value(param, state.raw(name))
    st.session_state[key] = shown if shown is not None else value if value in options else next(iter(options))
    shared: dict[str, Any] = {
        "format_func": lambda v: options.get(v, str(v)),
        "key": key,
        "help": help,
        "on_change": _commit,
        "args": (name, key),
        "label_visibility": "collapsed" if collapsed else "visible",
    }
    if style == "select":
        return st.selectbox(label, list(options), filter_mode=None, width=width or "stretch", **shared)
    return st.segmented_control(label, list(options), required=True, **shared)


def several(name: str, label: str, options: Mapping[str, str]) -> None:
    """Any number of named options; the URL lists their names."""
    key = f"w_{name}"
    st.session_state[key] = [v for v in _value(params.PARAMS[name], state.raw(name)) if v in options]
    st.pills(
        label,
        list(options),
        selection_mode="multi",
        format_func=options.__getitem__,
        key=key,
        on_change=_commit,
        args=(name, key, ",".join),
    )


def number(
    name: str,
    label: str,
    *,
    step: float,
    help: str | None = None,
    at: str = "",
    width: int | str = "stretch",
    fallback: int | None = None,
) -> None:
    """A number box. Its bounds are the core's, which answers with a sentence; nothing is clamped here.

    fallback: what an optional parameter shows while the URL leaves it out.
    """
    param = params.find(name)
    key = f"w_{name}{at}"
    value = _value(param, state.raw(name))
    if value is None:
        value = fallback
    whole = isinstance(value, int)
    try:  # what was typed stays in the box, also when it is refused; nan and the like no box can hold
        typed = (int if whole else float)(state.raw(name))
        value = typed if abs(typed) <= params.JS_SAFE else value
    except ValueError:
        pass
    st.session_state[key] = value
    st.number_input(
        label,
        key=key,
        step=int(step) if whole else float(step),
        format=None if whole else "%.6g",
        help=help,
        width=width,
        on_change=_commit,
        args=(name, key),
    )


def words(
    name: str,
    label: str,
    *,
    placeholder: str = "",
    width: int | str = "stretch",
    at: str = "",
    shown: str | None = None,
) -> None:
    """A line of text, committed with Enter. at, shown: as :func:`pick` has them."""
    key = f"w_{name}{at}"
    st.session_state[key] = state.raw(name) if shown is None else shown
    st.text_input(
        label,
        key=key,
        placeholder=placeholder,
        label_visibility="collapsed",
        width=width,
        on_change=_commit,
        args=(name, key),
    )


def toggle(name: str, label: str, *, help: str | None = None) -> bool:
    param = params.find(name)
    key = f"w_{name}"
    value = _value(param, state.raw(name))
    st.session_state[key] = value in (True, "on")
    return st.toggle(label, key=key, help=help, on_change=_commit, args=(name, key))


def encoding_names(names: Sequence[str] | None = None) -> dict[str, str]:
    """Registry name -> title in the session's language."""
    lang = current()
    return {name: encodings.ENCODINGS[name].title(lang) for name in names or encodings.ENCODINGS}


def basic_names() -> dict[str, str]:
    """The encodings shown side by side where there is no room for all: the basic ones, and the chosen one."""
    chosen = state.raw("encoding")
    extra = (chosen,) if chosen in encodings.ENCODINGS and chosen not in encodings.BASICS else ()
    return encoding_names((*encodings.BASICS, *extra))


def mask_names() -> dict[str, str]:
    return {"none": _("full"), "causal": _("causal")}


def sidebar(pages: Sequence[st.Page], parts: Sequence[str] = PARTS) -> Callable[[], None]:
    """Brand, language, pages; then those of the shared controls that change the page, always in the same order.

    Draws the sentences, which a page needs, and returns what draws the rest in its place: a page is drawn
    before it, so that the picture is the first to change. Parameters whose controls are not shown keep their
    values; the sentences' boxes hold theirs themselves, so on such pages they are only out of sight.
    """
    with st.sidebar:
        head = st.container()
        sentences = st.container(key=None if "sentences" in parts else "unused")
        rest = st.container()
    with sentences:
        _sentences()

    def draw() -> None:
        with head:
            _head(pages)
        with rest:
            _settings(parts)

    return draw


def _head(pages: Sequence[st.Page]) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.html('<div class="pv-brand">posviz</div>', width="content")
        _language()
    with st.container(key="nav", gap=None):
        for page in pages:
            st.page_link(page, label=page.title, width="stretch")


def _settings(parts: Sequence[str]) -> None:
    if "unit" in parts:
        pick("unit", _("cut into"), {"character": _("characters"), "word": _("words"), "byte": _("bytes")})
    if "encoding" in parts:
        pick("encoding", _("position encoding"), encoding_names(), style="select")
        with st.container():  # in a place of its own: what follows keeps its place, and "more" stays open
            _knobs(st.session_state.get("w_encoding", "none"))
    if "sizes" in parts:
        _sizes()
    elif "base" in parts:
        _base()
    if "base" in parts:
        _base_slider()
    if "more" in parts:
        _more()


def _more() -> None:
    with st.expander(_("more")):
        number("seed", _("seed"), step=1, help=_("Draws the untrained embeddings, projections and tables."))
        pick("mask", _("mask"), mask_names())
        pick("precision", _("computed in"), {name: name for name in params.PRECISIONS})


def _language() -> None:
    key = "w_lang"
    st.session_state[key] = current()
    st.segmented_control(
        _("language"),
        [lang for lang in reversed(LANGUAGES)],
        format_func=NAMES.__getitem__,
        key=key,
        required=True,
        label_visibility="collapsed",
        on_change=_commit,
        args=("lang", key),
    )


def _sentences() -> None:
    for side in ("a", "b"):
        row = st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False)
        row.html(f'<div class="pv-side pv-{side}"><span class="pv-dot"></span>{side.upper()}</div>', width="content")
        row.text_input(
            _("sentence {side}").format(side=side.upper()),
            value=params.PARAMS[side].default,
            key=side,
            bind="query-params",
            live=True,
            on_change=state.mend,
            args=(side,),
            placeholder=_("type a sentence"),
            label_visibility="collapsed",
        )
    row = st.container(horizontal=True)
    row.button(_("⇅ swap"), on_click=_swap, width="stretch", help=_("Exchanges A and B."))
    row.menu_button(
        _("examples"),
        range(len(PRESETS)),
        format_func=lambda i: f"{_short(PRESETS[i][0])} / {_short(PRESETS[i][1])}",
        key="preset",
        on_click=_preset,
        width="stretch",
    )


def _preset() -> None:
    chosen = st.session_state["preset"]
    if chosen is not None:
        _set_sentences(*PRESETS[chosen])


def _short(sentence: str, limit: int = 14) -> str:
    return sentence if len(sentence) <= limit else sentence[: limit - 1] + "…"


def _swap() -> None:
    _set_sentences(state.raw("b"), state.raw("a"))


def _set_sentences(a: str, b: str, unit: str | None = None) -> None:
    for name, text in (("a", a), ("b", b)):
        state.mend(name)
        st.session_state[name] = text
    if unit:
        state.put("unit", unit)


def _knobs(name: str) -> None:
    """The chosen encoding's own parameters, made from its field metadata."""
    lang = current()
    for item, (knob, default) in params.knobs(name).items():
        label, help, full = knob.label(lang), knob.help(lang), f"{name}_{item}"
        if knob.choices:
            names = [text(lang) for text in knob.names] or knob.choices
            pick(full, label, dict(zip(knob.choices, names, strict=True)), help=help)
        elif isinstance(default, bool):
            toggle(full, label, help=help)
        else:
            number(full, label, step=1 if isinstance(default, int) else default / 2, help=help)


def _sizes() -> None:
    left, right = st.columns(2)
    heads = _value(params.PARAMS["heads"], state.raw("heads"))
    d_model = _value(params.PARAMS["d_model"], state.raw("d_model"))
    with left:
        # + and - keep what the encoding needs, so that no step leads to a refusal; typing may.
        number("d_model", "d_model", step=_width_step(heads) if 0 < heads <= MAX_HEADS else 2)
    with right:
        fits = [h for h in range(1, MAX_HEADS + 1) if d_model > 0 and d_model % h == 0]
        options = sorted({*fits, heads})
        pick("heads", _("heads"), {h: str(h) for h in options}, style="select")
    with left:
        number("max_len", "max_len", step=16)
    with right:
        _base()


def _base() -> None:
    number("base", "base", step=1000)


def _width_step(heads: int) -> int:
    name = state.raw("encoding")
    spec = encodings.ENCODINGS[name]() if name in encodings.ENCODINGS else encodings.make("none")
    return math.lcm(2 * heads, spec.width_step(heads))


def _base_slider() -> None:
    key = "w_log_base"
    base = _value(params.PARAMS["base"], state.raw("base"))
    st.session_state[key] = round(state.log_base(base), 2) if base > 0 and base != float("inf") else 4.0
    st.slider(
        _("base on a log scale: 10^x"),
        min_value=0.1,
        max_value=7.0,
        step=0.05,
        format="10^%.2f",
        key=key,
        on_change=_commit,
        args=("base", key, lambda exponent: float(f"{10**exponent:.3g}")),
    )
