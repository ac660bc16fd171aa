"""One slider that switches between two large tables: ``?with=plotly|waves|cells&rows=512&cols=512``.

plotly: go.Heatmap of float64. waves: the posviz canvas with a sinusoidal table, as the Heatmap page
sends it. cells: the same canvas with a learned table, whose cells have to travel.
"""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from posviz import Dims, encodings, views
from posviz.ui.canvas import matrix
from posviz.ui.scenes.heatmap import WHOLE

BASES = (10_000.0, 100.0)
NAMES = {"waves": "sinusoidal", "cells": "learned"}


@st.cache_resource
def picture(name: str, rows: int, cols: int, which: int) -> views.Picture:
    options = {"base": BASES[which]} if name == "sinusoidal" else {}
    return views.picture(encodings.make(name, **options), Dims(d_model=cols, n_heads=1), rows, seed=which)


@st.cache_resource
def table(rows: int, cols: int, which: int) -> np.ndarray:
    return picture("sinusoidal", rows, cols, which).values().astype(np.float64)


def source(cells: views.Waves | views.Cells) -> matrix.Source:
    if isinstance(cells, views.Waves):
        return matrix.Sinusoid(omega=cells.frequencies, is_cos=cells.is_cos, rows=cells.rows)
    values = np.asarray(cells.values)
    return matrix.Dense(values=values) if values.size <= WHOLE else matrix.overview(values, cross=(0, 0))


def main() -> None:
    st.set_page_config("heatmaps", layout="wide")
    asked = st.query_params
    rows, cols = int(asked["rows"]), int(asked["cols"])
    which = st.slider("value", 0, 1000, key="value") % 2
    for other in range(2):  # nobody waits for numbers: what is measured is to send and to draw them
        table(rows, cols, other) if asked["with"] == "plotly" else picture(NAMES[asked["with"]], rows, cols, other)
    if asked["with"] == "plotly":
        figure = go.Figure(go.Heatmap(z=table(rows, cols, which), zmin=-1, zmax=1))
        figure.update_layout(height=matrix.HEIGHT)
        st.plotly_chart(figure, key="chart")
        return
    shown = picture(NAMES[asked["with"]], rows, cols, which)
    panel = matrix.Panel(
        source=source(shown.sources[0]),
        vmin=-shown.limit,
        vmax=shown.limit,
        x_label="dimension",
        y_label="position",
        col_info=shown.wavelengths,
    )
    matrix.show(matrix.bundle([panel], labels={}, alt="a table", file="table", selected=(0, 0)), key="canvas")


main()
