"""Every control's value as text in the URL.

Each parameter is one hidden text box bound to the URL: Streamlit then keeps it across pages, restores
it on Back and from a link, and never discards what it does not understand. The visible, translated
controls write into it and are set from it on every run. So a link can carry anything, and what it
carries is read in one place, ``params``, and refused by the core with one sentence.
"""

import math
from dataclasses import fields
from functools import cached_property
from typing import Any

import streamlit as st
import torch

from posviz import encodings, text
from posviz.attention import check_length
from posviz.encodings import Encoding
from posviz.types import Dims, Refusal, Text, Tokens, shown
from posviz.ui.lang import _
from posviz.ui.params import KNOBS, PARAMS, active, find, write


def chosen(name: str, count: int, default: int) -> int:
    """A choice among 0 .. count-1: the parameter's value, else ``default``.

    A choice that no longer exists (the table became narrower, the sentence shorter) counts as none;
    one that cannot exist on any page is refused.
    """
    value = get(name)
    return value if value is not None and 0 <= value < count else min(default, count - 1)


def bind() -> None:
    """Draw the hidden boxes; call once a run, before any control.

    Only of parameters that the link or the session has: every box costs, and most are never touched.
    """
    mended = st.session_state.setdefault("_mended", set())  # set by hand since: the link no longer counts
    st.session_state["_repeated"] = {
        name: values
        for name in st.query_params
        if (name in PARAMS or name in KNOBS) and name not in mended and len(values := st.query_params.get_all(name)) > 1
    }
    # the sentences are plain text: their visible boxes are bound
    kept = [
        p for p in active() if p.name not in ("a", "b") and (p.name in st.session_state or p.name in st.query_params)
    ]
    drawn = st.session_state.get("_texts", {})
    # A box writes changes into the URL, not what it begins with; all at once, or Back would need a press for each.
    begin = {p.name: value for p in kept if (value := st.session_state.get(p.name, p.default)) != p.default}
    begin = {name: value for name, value in begin.items() if name not in drawn and name not in st.query_params}
    if begin:
        st.query_params.update(begin)
    with st.container(key="url"):
        texts = {p.name: st.text_input(p.name, value=p.default, key=p.name, bind="query-params") for p in kept}
    st.session_state["_texts"] = texts  # a run asks a hundred times, and session_state is slow


def raw(name: str) -> str:
    """The text of a parameter in this session."""
    if name in ("a", "b"):
        return st.session_state.get(name, PARAMS[name].default)
    return st.session_state.get("_texts", {}).get(name, find(name).default)


def get(name: str) -> Any:
    """The value of a parameter; :class:`Refusal` when its text means nothing or the link gives it twice."""
    repeated = st.session_state.get("_repeated", {})
    if name in repeated:
        raise Refusal(
            Text("the link gives `{name}` more than once: {got}", "链接里 `{name}` 出现了多次：{got}"),
            field=name,
            name=name,
            got=shown(", ".join(repeated[name])),
        )
    try:
        return find(name).read(name, raw(name))
    except Refusal as refusal:
        refusal.param = name  # so that the page can offer a way back
        raise


def check() -> None:
    """Refuse what any parameter cannot mean, also one that this page does not use: nothing is ignored."""
    for param in active():
        get(param.name)


def whole(value: Any) -> int | None:
    """A whole number that a component sent, or None: a browser can send anything."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**31:
        return None
    return int(value) if value == int(value) else None


def mend(name: str) -> None:
    """From now on the person's choice counts, not what the link gave."""
    st.session_state.setdefault("_mended", set()).add(name)


def put(name: str, value: Any) -> None:
    """Set a parameter; only from a callback, or before ``bind`` in a run."""
    mend(name)
    st.session_state[name] = write(value)


class Setting:
    """What the controls ask for, built when a page asks, refused with one sentence when it cannot be."""

    @cached_property
    def lang(self) -> str:
        return get("lang")

    @cached_property
    def spec(self) -> Encoding:
        """The chosen encoding with its own parameters and the shared base."""
        return self.other(get("encoding"))

    def other(self, name: str, **changes: Any) -> Encoding:
        """An encoding by name: its parameters from the controls where they have some, else its defaults."""
        given: dict[str, Any] = {}
        for item in fields(encodings.ENCODINGS[name]):
            control = item.metadata.get("knob")
            if control is None:
                continue
            if control.shared:
                given[item.name] = get(item.name)
            else:
                given[item.name] = get(f"{name}_{item.name}")
        return encodings.make(name, **given | changes)

    @cached_property
    def dims(self) -> Dims:
        return Dims(d_model=get("d_model"), n_heads=get("heads"))

    @cached_property
    def max_len(self) -> int:
        return get("max_len")

    @cached_property
    def seed(self) -> int:
        return get("seed")

    @cached_property
    def mask(self) -> str:
        return get("mask")

    @cached_property
    def precision(self) -> str:
        return get("precision")

    @property
    def dtype(self) -> torch.dtype:
        return {"float32": torch.float32, "float64": torch.float64}[self.precision]

    def tokens(self, side: str) -> Tokens:
        """Sentence "a" or "b", cut; not empty and not longer than max_len."""
        tokens = self.loose_tokens(side)
        if not len(tokens):
            raise Refusal(
                Text(
                    "Sentence {side} is empty: type a word, or choose one of the examples.",
                    "句子 {side} 是空的：请输入一个词，或选一个例句。",
                ),
                field=side,
                side=side.upper(),
            )
        check_length(tokens, self.max_len)
        return tokens

    def loose_tokens(self, side: str) -> Tokens:
        """Sentence "a" or "b", cut; may be empty."""
        return text.tokenize(get(side), get("unit"))

    @property
    def parameters(self) -> str:
        """The parameters in one line, as every picture carries them."""
        dims = self.dims
        return _("{name} · d_model {d_model} · H {heads} · seed {seed}").format(
            name=self.spec.title(self.lang), d_model=dims.d_model, heads=dims.n_heads, seed=self.seed
        )


def log_base(value: float) -> float:
    """Where a base stands on the logarithmic slider."""
    return min(7.0, max(0.1, math.log10(value)))
