"""One slider, another large table with every step: ``?with=plotly|waves|cells&rows=512&cols=512&steps=9``.

plotly: go.Heatmap of float64. waves: the posviz canvas with a sinusoidal table, as the Heatmap page
sends it. cells: the same canvas with a learned table, whose cells have to travel.

No table comes twice: Streamlit does not send again what a browser has had.
"""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from posviz import Dims, encodings, views
from posviz.ui.canvas import matrix
from posviz.ui.scenes.heatmap import WHOLE

NAMES = {"plotly": "sinusoidal", "waves": "sinusoidal", "cells": "learned"}


@st.cache_resource
def picture(name: str, rows: int, cols: int, step: int) -> views.Picture:
    options = {"base": 100.0 + 50 * step} if name == "sinusoidal" else {}
    return views.picture(encodings.make(name, **options), Dims(d_model=cols, n_heads=1), rows, seed=step)


@st.cache_resource
def table(rows: int, cols: int, step: int) -> np.ndarray:
    return picture("sinusoidal", rows, cols, step).values().astype(np.float64)


def source(cells: views.Waves | views.Cells) -> matrix.Source:
    if isinstance(cells, views.Waves):
        return matrix.Sinusoid(omega=cells.frequencies, is_cos=cells.is_cos, rows=cells.rows)
    values = np.asarray(cells.values)
    return matrix.Dense(values=values) if values.size <= WHOLE else matrix.overview(values, cross=(0, 0))


def draw(asked: str, rows: int, cols: int, step: int) -> None:
    if asked == "plotly":
        figure = go.Figure(go.Heatmap(z=table(rows, cols, step), zmin=-1, zmax=1))
        figure.update_layout(height=matrix.HEIGHT)
        st.plotly_chart(figure, key="chart")
        return
    shown = picture(NAMES[asked], rows, cols, step)
    panel = matrix.Panel(
        source=source(shown.sources[0]),
        vmin=-shown.limit,
        vmax=shown.limit,
        x_label="dimension",
        y_label="position",
        col_info=shown.wavelengths,
    )
    matrix.show(matrix.bundle([panel], labels={}, alt="a table", file="table", selected=(0, 0)), key="canvas")


st.set_page_config("heatmaps", layout="wide")
asked = st.query_params["with"]
rows, cols, steps = (int(st.query_params[name]) for name in ("rows", "cols", "steps"))
for ready in range(steps + 1):  # all tables are made before the first press: it is to send and to draw that takes time
    table(rows, cols, ready) if asked == "plotly" else picture(NAMES[asked], rows, cols, ready)
draw(asked, rows, cols, st.slider("value", 0, steps, key="value"))
