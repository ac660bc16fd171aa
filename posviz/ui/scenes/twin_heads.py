"""What the heads of the trained twins were measured to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from posviz import encodings, figures
from posviz.ui import blocks, shell, state
from posviz.ui.lang import N_, _
from posviz.ui.scenes import studio

ROLE_NAMES = {
    "previous": N_("the character before"),
    "first": N_("the start"),
    "self": N_("the character itself"),
    "column": N_("the same place in the line before"),
    "rhyme": N_("earlier line ends, from a line end"),
    "marks": N_("punctuation"),
}
# What the panels show, in fewer words.
DRAWN = {
    "previous": N_("character before"),
    "column": N_("same column"),
    "rhyme": N_("rhyme: line ends"),
    "marks": N_("punctuation"),
}
KEY = "twins_heads"


def roles(setting: state.Setting, twins: Mapping[str, Any], names: Sequence[str]) -> None:
    """All heads of all twins, by how much of their attention goes where; a click chooses one, for the Studio too."""
    names = [name for name in names if "strongest" in twins.get(name, {})]
    if not names:
        return
    title = {name: encodings.ENCODINGS[name].title(setting.lang) for name in names}
    of = {name: twins[name]["heads"] for name in names}
    one = of[names[0]]
    chosen = _chosen(names, of)
    figure = figures.head_roles(
        {title[name]: {_(DRAWN[role]): [head[role]["share"] for head in of[name]] for role in DRAWN} for name in names},
        {_(DRAWN[role]): one[0][role]["chance"] for role in DRAWN},
        [_("layer {n}, head {h}").format(n=head["layer"] + 1, h=head["head"]) for head in one],
        strongest={title[name]: {_(DRAWN[role]): twins[name]["strongest"][role] for role in DRAWN} for name in names},
        chosen=chosen,
        title=_("What did their heads learn to look at?"),
        parameters=_(
            "Each dot a head, on held-out quatrains; filled: the strongest; its bar: the strongest over {n} seeds"
        ).format(n=len(twins[names[0]]["seeds"])),
        dark=st.context.theme.type == "dark",
        lang=setting.lang,
    )
    figure.update_layout(width=None, autosize=True, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)")
    st.plotly_chart(
        figure,
        theme=None,
        key=KEY,
        config={"displayModeBar": False},
        on_select=lambda: _choose(names, of),
        selection_mode="points",
    )
    if chosen is None:
        blocks.note(_("Click a dot: the same head in every panel, and a way to its weights."))
        return
    name = names[chosen[0]]
    head = of[name][chosen[1]]
    with st.container(horizontal=True, vertical_alignment="center"):
        blocks.label(_said(title[name], head))
        st.page_link(shell.page("studio"), label=_("look at this head →"), width="content")


def _said(title: str, head: Mapping[str, Any]) -> str:
    """What a head looks at most, beyond chance, with two standard errors over the poems."""
    best = sorted(ROLE_NAMES, key=lambda role: head[role]["chance"] - head[role]["share"])[:2]
    return _("{name}, layer {n}, head {h}: {list}.").format(
        name=title,
        n=head["layer"] + 1,
        h=head["head"],
        list=_("; ").join(
            _("{role} {share} ± {error} (even attention {chance})").format(
                role=_(ROLE_NAMES[role]),
                share=f"{100 * head[role]['share']:.0f} %",
                error=f"{200 * head[role]['error']:.1f} %",
                chance=f"{100 * head[role]['chance']:.0f} %",
            )
            for role in best
        ),
    )


def _chosen(names: Sequence[str], of: Mapping[str, Any]) -> tuple[int, int] | None:
    """The Studio's head, where it is one of a twin."""
    kind, _colon, name = studio.chosen_name().partition(":")
    layer, head = state.get("slayer"), state.get("shead")
    if kind != "twin" or name not in names or layer is None or head is None:
        return None
    places = [(found["layer"] + 1, found["head"]) for found in of[name]]
    return (names.index(name), places.index((layer, head))) if (layer, head) in places else None


def _place(sent: Any) -> tuple[int | None, int | None]:
    """(model, head) of the dot that was clicked; a browser can send anything."""
    for step in ("selection", "points", 0, "customdata"):
        if isinstance(step, int):
            sent = sent[0] if isinstance(sent, list) and sent else None
        else:
            sent = sent.get(step) if isinstance(sent, Mapping) else None
    return (state.whole(sent[0]), state.whole(sent[1])) if isinstance(sent, list) and len(sent) == 2 else (None, None)


def _choose(names: Sequence[str], of: Mapping[str, Any]) -> None:
    model, index = _place(st.session_state[KEY])
    if model is None or index is None or model >= len(names) or index >= len(of[names[model]]):
        return
    head = of[names[model]][index]
    for name, value in (
        ("smodel", f"twin:{names[model]}"),
        ("sview", "head"),
        ("slayer", head["layer"] + 1),
        ("shead", head["head"]),
    ):
        state.put(name, value)
