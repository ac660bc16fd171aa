"""The course's guide as a question; every recommendation is tied to a measurement, or says that there is none."""

from html import escape
from statistics import median
from typing import NamedTuple

import streamlit as st

from posviz import encodings, trained
from posviz.ui import blocks, controls, state
from posviz.ui.lang import N_, _, current, joined, named
from posviz.ui.scenes.compare import Scene

NEEDS = {
    "short": N_("short texts of a known length"),
    "long": N_("long texts"),
    "extrapolate": N_("longer texts than in training"),
    "relative": N_("only distances should count"),
}
ADVICE = {"short": ("learned",), "long": ("sinusoidal", "rope"), "extrapolate": ("rope", "alibi"), "relative": ("t5",)}


LUCK = 0.02  # of a loss: what another seed may change


class Support(NamedTuple):
    """A sentence with its number, where it can be seen (a link of this app and its words), whether it backs the advice."""

    text: str
    backs: bool | None
    link: str = ""
    see: str = ""


def show(setting: state.Setting, scene: Scene) -> None:
    question = _("Which one for my model?")  # not inside the f-string: Babel on Python 3.11 would miss it
    st.html(f'<h2 class="pv-second" id="guide">{escape(question)}</h2>')
    controls.pick("need", _("What do you have?"), {key: _(text) for key, text in NEEDS.items()}, collapsed=True)
    need = state.get("need")
    for name in ADVICE[need]:
        _one(name, [s for s in (_measured(scene, need, name), _trained(need, name)) if s])


def _one(name: str, support: list[Support]) -> None:
    """An advice, how many measurements back it, and each of them with its link."""
    title = encodings.ENCODINGS[name].title(current())
    backing = sum(item.backs is True for item in support)
    if backing:
        head = _("{name}: supported by {n} of {m} measurements").format(name=title, n=backing, m=len(support))
    else:
        head = _("{name}: no measurement here supports it").format(name=title)
    lines = ""
    for item in support:
        mark = {True: _("supports it"), False: _("speaks against it"), None: _("says nothing about it")}[item.backs]
        link = f' <a href="{escape(item.link)}" target="_self">{escape(item.see)}</a>' if item.link else ""
        lines += f"<li>{named(f'<b>{escape(mark)}</b>', escape(item.text))}{link}</li>"
    st.html(f'<div class="pv-advice"><b>{escape(head)}</b><ul>{lines}</ul></div>')


def _measured(scene: Scene, need: str, name: str) -> Support:
    """What the table above says about an advice."""
    row = scene.rows.get(name)
    if row is None:
        return Support(_("These sizes do not suit it, so nothing is measured."), None)
    found = row.found
    where = {"link": f"#row-{name}", "see": _("see the table")}
    beyond = _("defined") if found.reach else _("refused")
    if need == "short":
        text = _(
            "{n} numbers are trained, and position max_len is {what}: it fits a known length and no longer."
        ).format(n=f"{found.parameters:,}", what=beyond)
        return Support(text, None, **where)
    if need == "long":
        text = _("Position max_len is {what}, {n} numbers are trained.").format(what=beyond, n=f"{found.parameters:,}")
        return Support(text, found.reach and not found.parameters, **where)
    if need == "extrapolate":
        text = _("Position max_len is {what}. That a formula goes on does not mean that a trained model does.").format(
            what=beyond
        )
        return Support(text, None if found.reach else False, **where)
    text = _("Equal words at one distance: scores differ by {x} (relative).").format(x=blocks.compact(found.scores, 2))
    return Support(text, found.nature == "relative", **where)


def _trained(need: str, name: str) -> Support | None:
    """What real trainings say, if results are shipped."""
    if need == "relative":
        return None
    if need == "long":
        return Support(_("The shipped twins were trained on short texts: they say nothing about long ones."), None)
    found = _short(name) if need == "short" else _stretched(name)
    return found or Support(
        _("Not measured yet: no trained models of this kind are shipped. Nothing here supports it."), None
    )


def _twins() -> dict[str, str]:
    return {"link": f"twins?lang={current()}", "see": _("see the twins")}


def _short(name: str) -> Support | None:
    """The loss at the trained length, beside the best other twin's; differences below 2 % are a matter of luck."""
    known = {key: loss for key in trained.measured() if (loss := trained.loss(key, "1x")) is not None}
    if name not in known or len(known) < 2:
        return None
    mine = known.pop(name)
    best = min(known, key=known.__getitem__)
    text = _("Trained twins at the trained length: loss {x} nats a token; the best other, {best}, {y}.").format(
        x=f"{mine:.3f}", best=encodings.ENCODINGS[best].title(current()), y=f"{known[best]:.3f}"
    )
    if abs(mine - known[best]) < LUCK * known[best]:
        return Support(joined(text, _("Differences below 2 % mean nothing.")), None, **_twins())
    return Support(text, mine < known[best], **_twins())


def _stretched(name: str) -> Support | None:
    """How the loss grows beyond the trained length, beside the other twins."""
    mine = trained.stretch(name)
    others = [grown for key in trained.measured() if key != name and (grown := trained.stretch(key)) is not None]
    if mine is None or not others:
        return None
    middle = median([*others, mine])
    text = _(
        "Trained twins at four times the trained length: the loss grows by {x} nats a token; the median of {n} twins is {y}."
    ).format(x=f"{mine:.2f}", n=len(others) + 1, y=f"{middle:.2f}")
    return Support(text, mine < middle, **_twins())
