"""The box for a table of one's own, wherever a table can be chosen."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from posviz import tables
from posviz.ui import blocks, state, table_sources
from posviz.ui.lang import _, current


@contextmanager
def popover(label: str, param: str) -> Iterator[None]:
    """Where :func:`box` stands; it closes when a table was taken, so that its picture is seen."""
    with st.popover(label, key=_place(param), on_change="rerun"):
        yield


def _place(param: str) -> str:
    return f"w_{param}_place"


def box(param: str) -> None:
    """What is uploaded becomes the session's own table, and the choice of ``param``."""
    key = f"w_{param}_file"

    def taken() -> None:
        file = st.session_state[key]
        st.session_state.pop(table_sources.REFUSED, None)
        if file is not None:  # taken away from the box, a table is still shown
            table_sources.take(file.name, file.getvalue())
            state.put(param, "upload")
            if table_sources.REFUSED not in st.session_state:
                st.session_state[_place(param)] = False

    st.file_uploader(
        _("your own table: one row for each position"),
        type=["npy", "npz", "safetensors", "csv"],
        key=key,
        max_upload_size=tables.MAX_BYTES // 1_000_000,
        on_change=taken,
    )
    refusal = st.session_state.get(table_sources.REFUSED)
    if refusal is not None:  # the page says it too, but this box may lie over it
        blocks.note(refusal.text(current()))
    blocks.note(
        _("Up to {mb} MB. Nothing in it is executed, and nobody else sees it.").format(mb=tables.MAX_BYTES // 1_000_000)
    )
