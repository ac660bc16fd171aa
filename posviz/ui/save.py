"""Downloads: standalone HTML, CSV, NPZ. Made when a button is clicked, not on every rerun."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import streamlit as st

from posviz.ui import blocks
from posviz.ui.canvas.bundle import standalone_html
from posviz.ui.lang import _, current

LARGEST = 2_000_000  # numbers in a download


def row(
    key: str,
    *,
    component: str,
    data: bytes,
    title: str,
    caption: str,
    arrays: Callable[[], Mapping[str, np.ndarray]],
    table: Callable[[], Iterable[Sequence[object]]],
    count: int = 0,
) -> None:
    """The buttons under a picture. arrays: what the NPZ holds; table: the lines of the CSV, header first.

    count: how many numbers these are; beyond LARGEST only the web page is offered.
    """
    lang = current()

    def page() -> str:
        return standalone_html(component, data, title=title, caption=caption, lang=lang)

    def npz() -> bytes:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays())
        return buffer.getvalue()

    def lines() -> str:
        buffer = io.StringIO()
        csv.writer(buffer).writerows(table())
        return "\ufeff" + buffer.getvalue()  # Excel reads Chinese only with a byte order mark

    made = {
        _("Web page (works offline)"): (page, "html", "text/html"),
        _("Numbers as CSV"): (lines, "csv", "text/csv"),
        _("Numbers as NPZ"): (npz, "npz", "application/octet-stream"),
    }
    if count > LARGEST:
        made = dict(list(made.items())[:1])
        blocks.note(
            _("{count} numbers are too many to download from here (up to {limit}): the code gives them.").format(
                count=f"{count:,}", limit=f"{LARGEST:,}"
            )
        )
    with st.container(horizontal=True):
        for label, (make, ending, mime) in made.items():
            st.download_button(
                label, make, f"posviz-{key}.{ending}", mime, key=f"save_{key}_{ending}", on_click="ignore"
            )
    blocks.note(_("PNG and SVG as seen: the buttons above the picture."))


def cells(values: np.ndarray, first_row: int = 0) -> Iterable[Sequence[object]]:
    """CSV lines of a matrix: column numbers on top, row numbers on the left."""
    yield ["", *range(values.shape[1])]
    for i, line in enumerate(values):
        yield [i + first_row, *line.tolist()]
