"""What moves on the Rotation page, and what its films share."""

from collections.abc import Mapping
from types import ModuleType

import streamlit as st

from posviz.ui import controls, shell, state
from posviz.ui.lang import _
from posviz.ui.scenes import film_base, film_digits, film_pairing, film_two, rotation

FILMS: Mapping[str, ModuleType] = {
    "one": rotation,
    "two": film_two,
    "base": film_base,
    "digits": film_digits,
    "pairing": film_pairing,
}


def chosen() -> ModuleType:
    """The film that the link asks for; the first one where it asks for what there is not."""
    return FILMS.get(state.raw("watch"), rotation)


def tools(setting: state.Setting, film: ModuleType) -> None:
    """What to watch, beside the film's own controls."""
    names = {
        "one": _("rotation"),
        "two": _("scalings"),
        "base": _("base sweep"),
        "digits": "bfloat16",
        "pairing": _("pairings"),
    }
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="films"):
        controls.pick("watch", _("what to watch"), names, collapsed=True)
        with st.container(horizontal=True, horizontal_alignment="right", width="content"), shell.guard(quiet=True):
            film.toolbar(setting)
    if hasattr(film, "choosers"):
        film.choosers()
