"""The precision switch of Heatmap, Similarity and Rotation: the error against float64, drawn."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from posviz import precision
from posviz.ui import blocks, controls, state
from posviz.ui.canvas import matrix
from posviz.ui.lang import _

HEIGHT = 380
WHOLE = 2_000_000  # cells that are sent whole


def switch() -> str:
    """The control; returns the chosen type."""
    with st.container(horizontal=True, vertical_alignment="center", key="digits_row"):
        blocks.label(_("Numbers in"))
        controls.pick("digits", _("numbers in"), {name: name for name in precision.DTYPES}, collapsed=True)
    return state.get("digits")


def show(
    key: str,
    name: str,
    make: Callable[[], np.ndarray],
    *,
    axes: tuple[str, str],
    texts: dict[str, str],
    first_row: int = 0,
    remark: str = "",
) -> None:
    """Draw ``make()`` (rows, cols), the error of the type called ``name``, on a scale of its own."""
    errors = np.asarray(make(), dtype=np.float64)
    finite = errors[np.isfinite(errors)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    if not largest:
        blocks.note(_("{name} holds every one of these numbers exactly: no error to draw.").format(name=name))
        return
    source = matrix.Dense(values=errors) if errors.size <= WHOLE else matrix.overview(errors)
    title = _("{name} minus float64, largest {error}").format(name=name, error=blocks.compact(largest))
    panel = matrix.Panel(
        source=source,
        vmin=-largest,
        vmax=largest,
        title=title,
        row_start=first_row,
        x_label=axes[1],
        y_label=axes[0],
    )
    data = matrix.bundle([panel], labels=texts, alt=title, file=f"posviz-{key}-error", height=HEIGHT)
    matrix.show(data, key=f"{key}_error", height=HEIGHT)
    if remark:
        blocks.note(remark)
