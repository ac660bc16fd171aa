"""The course's guide as a question; every recommendation is tied to a measurement, or says that there is none."""

from html import escape
from typing import NamedTuple

import streamlit as st

from posviz import encodings, trained
from posviz.ui import blocks, controls, state
from posviz.ui.lang import N_, _, current
from posviz.ui.scenes.compare import Scene

NEEDS = {
    "short": N_("short texts of a known length"),
    "long": N_("long texts"),
    "extrapolate": N_("longer texts than in training"),
    "relative": N_("only distances should count"),
}
ADVICE = {"short": ("learned",), "long": ("sinusoidal", "rope"), "extrapolate": ("rope", "alibi"), "relative": ("t5",)}


class Support(NamedTuple):
    """A sentence with its number, where it can be seen (a link of this app), and whether it backs the advice."""

    text: str
    link: str
    backs: bool | None


def show(setting: state.Setting, scene: Scene) -> None:
    question = _("Which one for my model?")  # not inside the f-string: Babel on Python 3.11 would miss it
    st.html(f'<h2 class="pv-second" id="guide">{escape(question)}</h2>')
    controls.pick("need", _("What do you have?"), {key: _(text) for key, text in NEEDS.items()}, collapsed=True)
    need = state.get("need")
    for name in ADVICE[need]:
        _one(name, [s for s in (_measured(scene, need, name), _trained(need, name)) if s])


def _one(name: str, support: list[Support]) -> None:
    title = encodings.ENCODINGS[name].title(current())
    lines, see = "", escape(_("see the table"))
    for item in support:
        mark = {True: _("supports it"), False: _("speaks against it"), None: _("says nothing about it")}[item.backs]
        link = f' <a href="{escape(item.link)}" target="_self">{see}</a>' if item.link else ""
        lines += f"<li><b>{escape(mark)}</b>: {escape(item.text)}{link}</li>"
    st.html(f'<div class="pv-advice"><b>{escape(title)}</b><ul>{lines}</ul></div>')


def _measured(scene: Scene, need: str, name: str) -> Support | None:
    """What the table above says about an advice."""
    row = scene.rows.get(name)
    if row is None:
        return Support(_("These sizes do not suit it, so nothing is measured."), "", None)
    found = row.found
    if need == "short":
        text = _(
            "{n} numbers are trained, and position max_len is {what}: it fits a known length and no longer."
        ).format(n=f"{found.parameters:,}", what=_("defined") if found.reach else _("refused"))
        return Support(text, f"#row-{name}", None)
    if need == "long":
        text = _("Position max_len is {what}, {n} numbers are trained.").format(
            what=_("defined") if found.reach else _("refused"), n=f"{found.parameters:,}"
        )
        return Support(text, f"#row-{name}", found.reach and not found.parameters)
    if need == "extrapolate":
        text = _("Defined beyond max_len. That a formula goes on does not mean that a trained model does.")
        return Support(text, f"#row-{name}", None)
    text = _("Equal words at one distance: scores differ by {x} (relative).").format(x=blocks.compact(found.scores, 2))
    return Support(text, f"#row-{name}", found.nature == "relative")


def _trained(need: str, name: str) -> Support | None:
    """What real trainings say, if results are shipped."""
    if need == "relative":
        return None
    if need == "short":
        losses = {key: trained.loss(key, "1x") for key in encodings.BASICS}
        known = {key: value for key, value in losses.items() if value is not None}
        if name not in known or len(known) < 2:
            return _nothing()
        best = min(known, key=known.__getitem__)
        text = _("Trained twins at the trained length: loss {x} nats a token; the best, {best}, {y}.").format(
            x=f"{known[name]:.3f}", best=encodings.ENCODINGS[best].title(current()), y=f"{known[best]:.3f}"
        )
        return Support(text, "", best == name)
    grown = trained.stretch(name)
    if grown is None:
        return _nothing()
    others = [value for key in encodings.BASICS if key != name and (value := trained.stretch(key)) is not None]
    text = _("Trained twins at four times the trained length: the loss grows by {x} nats a token.").format(
        x=f"{grown:.3f}"
    )
    return Support(text, "", grown <= sorted([*others, grown])[len(others) // 2])


def _nothing() -> Support:
    return Support(
        _("Not measured yet: no trained models of this kind are shipped. Nothing here supports it."), "", None
    )
