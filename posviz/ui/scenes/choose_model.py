"""A model from outside the catalog: a folder or a hub's name, opened only after somebody here asked for it.

A link may carry any name; reading a folder or downloading gigabytes is not something that a link may start.
"""

import streamlit as st

from posviz import models
from posviz.models import pretrained
from posviz.models.pretrained import limits
from posviz.types import shown
from posviz.ui import asked, blocks, state
from posviz.ui.lang import _


def agreed(name: str) -> bool:
    """Whether a model may be opened: it is in the catalog, this session asked for it, or it can only be one of
    posviz's own, there or not."""
    own = name.startswith(("twin:", "local:")) or any(entry.key == name for entry in models.catalog())
    return own or name in asked.names()


def ask(name: str) -> None:
    """In the place of a page: what a link wants to open, and the button that does."""
    blocks.note(_("The link names a model that is not in the list: {name}").format(name=shown(name, 80)))
    blocks.note(_("Opening it reads that folder, or downloads the model from the hub."))
    st.button(_("open it"), key="agree_model", on_click=asked.add, args=(name,))


def other(*, short: bool = False) -> None:
    """The box for a folder or a hub's name; or why there is none. short: a plus sign, where there is no room."""
    with st.popover("＋" if short else _("another model"), help=_("another model") if short else None):
        if not pretrained.installed():
            blocks.note(_("Real models need more packages: {command}").format(command=pretrained.COMMAND))
            return
        if not limits.from_environment().folders:
            blocks.note(_("This server offers the models of its list only."))
            return
        with st.form("other_model", border=False):
            st.text_input(_("folder, or name on the hub"), key="w_other_model", placeholder="/path, gpt2, owner/name")
            st.form_submit_button(_("open it"), on_click=_open)
        blocks.note(_("Safetensors only; nothing in the folder is executed. `make models` fetches two models."))


def _open() -> None:
    name = st.session_state["w_other_model"].strip()
    if name:
        asked.add(name)
        state.put("smodel", name)
