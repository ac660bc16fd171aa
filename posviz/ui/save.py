"""Downloads: standalone HTML, CSV, NPZ. Made when a button is clicked, not on every rerun."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

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

    made = {
        _("Web page (works offline)"): (page, "html", "text/html"),
        _("Numbers as CSV"): (lambda: _csv(table()), "csv", "text/csv"),
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


_DOCUMENT = """<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ margin: 24px; font-family: "Source Sans", system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  background: light-dark(#ffffff, #12151b); color: light-dark(#1c2330, #e6e9ef); }}
h1 {{ font-size: 28px; margin: 0 0 4px; }}
{style}
</style>
</head>
<body>
<h1>{title}</h1><p class="pv-note">{caption}</p>
{body}
</body>
</html>
"""


def document(
    key: str,
    *,
    title: str,
    caption: str,
    body: Callable[[], str],
    table: Callable[[], Iterable[Sequence[object]]],
) -> None:
    """The buttons of a page that is text: as HTML that works offline, and its numbers as CSV. body: escaped HTML."""
    lines = blocks.CSS.read_text("utf-8").splitlines()
    rules = [line for line in lines if line.startswith((".pv-", "  ")) and "data-testid" not in line]  # not Streamlit's

    def page() -> str:
        return _DOCUMENT.format(
            lang=escape(current()), title=escape(title), caption=escape(caption), style="\n".join(rules), body=body()
        )

    with st.container(horizontal=True):
        for label, make, ending, mime in (
            (_("Web page (works offline)"), page, "html", "text/html"),
            (_("Numbers as CSV"), lambda: _csv(table()), "csv", "text/csv"),
        ):
            st.download_button(
                label, make, f"posviz-{key}.{ending}", mime, key=f"save_{key}_{ending}", on_click="ignore"
            )


def _csv(lines: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(lines)
    return "\ufeff" + buffer.getvalue()  # Excel reads Chinese only with a byte order mark


def cells(values: np.ndarray, first_row: int = 0) -> Iterable[Sequence[object]]:
    """CSV lines of a matrix: column numbers on top, row numbers on the left."""
    yield ["", *range(values.shape[1])]
    for i, line in enumerate(values):
        yield [i + first_row, *line.tolist()]
