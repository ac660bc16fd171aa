"""Tables: one table of positions as a picture, and what was measured of it."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from posviz import similarity, views
from posviz import tables as core
from posviz.ui import blocks, controls, save, state, table_sources
from posviz.ui.canvas import matrix as canvas
from posviz.ui.lang import _, joined, labels
from posviz.ui.scenes import cells, table_upload
from posviz.ui.table_sources import ROWS, UPLOAD, Chosen

KEY = "tables_canvas"
FOUND = "_table_found"  # the last table's measurements: an upload's are nobody else's
HEIGHT = 430


@dataclass(frozen=True, eq=False)
class Scene:
    """The table, how many of its rows are looked at, what was found in them, and the chosen cell."""

    chosen: Chosen
    values: np.ndarray
    found: core.Found
    view: str
    row: int
    col: int

    @property
    def caption(self) -> str:
        return f"{self.chosen.title} · {self.values.shape[0]:,} × {self.values.shape[1]:,}"


def toolbar(setting: state.Setting) -> None:
    """Which table, how many of its rows, and an upload."""
    names = table_sources.names()
    controls.pick("table", _("table"), names, style="select", collapsed=True, width=300)
    controls.pick("tview", _("picture"), {"rows": _("its rows"), "alike": _("how alike they are")}, collapsed=True)
    with table_upload.popover(_("upload a table"), "table"):
        table_upload.box("table")
    kept = st.session_state.get(UPLOAD)
    if state.raw("table") == "upload" and kept is not None and len(kept.found) > 1:
        st.session_state["w_table_which"] = kept.which
        st.selectbox(
            _("which of its tables"),
            list(kept.found),
            key="w_table_which",
            label_visibility="collapsed",
            width=260,
            on_change=lambda: table_sources.choose(st.session_state["w_table_which"]),
        )


def build(setting: state.Setting) -> Scene:
    state.check()
    chosen = table_sources.chosen(setting)
    asked = state.get("trows")  # of another table, if this one has fewer
    rows = asked if asked is not None and asked <= len(chosen.values) else chosen.used
    values, view = chosen.values[:rows], state.get("tview")
    found = _found(f"{chosen.key} {rows}", values)
    if view == "alike":  # a row, and the one that is most like it
        row = state.chosen("row", found.pairs, found.pairs // 4)
        col = state.chosen("col", found.pairs, int(found.neighbours.nearest[row]))
    else:
        row = state.chosen("row", rows, rows // 4)
        col = state.chosen("col", values.shape[1], values.shape[1] * 21 // 64)
    return Scene(chosen, values, found, view, row, col)


def _found(key: str, values: np.ndarray) -> core.Found:
    kept = st.session_state.get(FOUND)
    if kept is None or kept[0] != key:
        with st.spinner(_("Measuring the table …")):
            kept = st.session_state[FOUND] = (key, core.analyse(values))
    return kept[1]


# ---------------------------------------------------------------- the large picture
def bundle(scene: Scene) -> bytes:
    values, chosen = scene.values, scene.chosen
    panel, texts = _alike(scene) if scene.view == "alike" else _rows(scene)
    return canvas.bundle(
        [panel],
        labels=texts,
        alt=_("Heatmap of {name}, {rows} rows, {cols} columns").format(
            name=chosen.title, rows=values.shape[0], cols=panel.source.shape[1]
        ),
        file=f"posviz-table-{scene.view}",
        selected=(scene.row, scene.col),
        height=HEIGHT,
    )


def _rows(scene: Scene) -> tuple[canvas.Panel, dict[str, str]]:
    """The table itself."""
    values, chosen = scene.values, scene.chosen
    picture = views.Picture(
        "table", (views.Cells(values),), table_sources.limit(scene.values), chosen.first_row, None, len(values)
    )
    window = st.session_state.get(KEY, {}).get("window")
    panel = cells.panel(picture, scene.caption, window=window, cross=(scene.row, scene.col))
    columns = _("head") if chosen.what == "bucket" else _("dimension")
    return replace(panel, y_label=_(ROWS[chosen.what]), x_label=columns), _texts(chosen.what)


def _alike(scene: Scene) -> tuple[canvas.Panel, dict[str, str]]:
    """The cosine of every two rows, of a long table of the first ones."""
    values = similarity.matrix(scene.values[: scene.found.pairs], "cosine").astype(np.float32)
    rows = _(ROWS[scene.chosen.what])
    panel = canvas.Panel(
        source=canvas.Dense(values=values),
        vmin=-1.0,
        vmax=1.0,
        title=_("{name}: cosine of every two rows").format(name=scene.chosen.title),
        row_start=scene.chosen.first_row,
        x_label=rows,
        y_label=rows,
    )
    names = (_("Row {row}"), _("row {col}"), _("Row {col}"), _("rows {row} and {col}"))
    return panel, labels(canvas.LABELS) | dict(zip(("row", "at", "column", "cell"), names, strict=True))


def _texts(what: str) -> dict[str, str]:
    texts = cells.picture_labels("distance_table" if what == "distance" else "table")
    if what == "bucket":
        texts |= {
            "row": _("Bucket {row}"),
            "at": _("head {col}"),
            "column": _("Head {col}"),
            "cell": _("bucket {row}, head {col}"),
        }
    return texts


def show(scene: Scene) -> None:
    def choose() -> None:
        cell = st.session_state[KEY].cell
        place = {name: state.whole(cell.get(name)) for name in ("row", "col")} if isinstance(cell, dict) else {}
        if place and None not in place.values():
            for name, at in place.items():
                state.put(name, at)

    canvas.show(bundle(scene), key=KEY, height=HEIGHT, on_cell=choose)
    with st.container(horizontal=True, vertical_alignment="bottom", key="table_rows"):
        controls.number("trows", _("rows looked at"), step=1, width=150, fallback=len(scene.values))
        blocks.label(_remark(scene))


def _remark(scene: Scene) -> str:
    """What the picture does not say by itself."""
    chosen = scene.chosen
    said = [_("of {n}").format(n=f"{len(chosen.values):,}")]
    if chosen.used < len(chosen.values):
        said.append(_("training has used the first {n}").format(n=chosen.used))
    if scene.view == "rows" and (cut := table_sources.cut(scene.values)):
        said.append(cut)
    return " · ".join(said)


# ---------------------------------------------------------------- numbers
def _percent(share: float) -> str:
    """Whole percents, but nothing is rounded to all or to less than a tenth of its size."""
    whole = min(abs(share), abs(1 - share)) < 1e-9 or 0.0995 <= share < 0.985
    return f"{100 * share:.0f} %" if whole else f"{100 * share:.1f} %"


def proof(scene: Scene) -> list[blocks.Number]:
    found = scene.found

    def beside(share: float, chance: float, caption: str) -> blocks.Number:
        return blocks.Number(_percent(share), caption, _("by chance {share}").format(share=_percent(chance)))

    return [
        beside(
            found.neighbours.beside,
            found.neighbours.chance,
            _("of the rows are most like the one before or after"),
        ),
        beside(found.distances.explained, found.distances.chance, _("of the similarity is a matter of distance alone")),
        beside(found.waves.total, found.waves.chance, _("of the variance is one sinusoid for each dimension")),
    ]


def numbers(scene: Scene) -> None:
    """The rest of what was measured."""
    found, dash = scene.found, "–"
    lines = [
        (_("most often the nearest row is so many rows away"), f"{found.neighbours.usual:,}", dash),
        (
            _("of the variance in {n} principal components").format(n=len(found.components.shares)),
            _percent(float(found.components.shares.sum())),
            dash,
        ),
        (
            _("of the variance a linear map of sinusoids gives"),
            _percent(found.sinusoids.explained),
            _percent(found.sinusoids.chance),
        ),
        (_("alike to sinusoids up to rotation (linear CKA)"), f"{found.sinusoids.alike:.3f}", dash),
        (_("median length of a row"), blocks.compact(found.norms.median), dash),
        (
            _("rows of unusual length: more than {n:g} robust deviations from the median").format(n=core.OUTLIER),
            f"{len(found.norms.outliers):,}",
            dash,
        ),
    ]
    remark = _("By chance: what random numbers of this size give. Sinusoids: base 10000, as wide as the table.")
    if found.pairs < len(scene.values):
        remark = joined(
            remark, _("Rows are compared with each other among the first {n}.").format(n=f"{found.pairs:,}")
        )
    blocks.table(["", _("here"), _("by chance")], lines, _("More about this table"), remark)


# ---------------------------------------------------------------- details
def formula(scene: Scene) -> None:
    neighbours, norms = scene.found.neighbours, scene.found.norms
    p = scene.row if scene.row < len(neighbours.nearest) else 0
    st.latex(
        r"\mathrm{nearest}(p) = \arg\max_{q\ne p} \frac{E_p\cdot E_q}{\|E_p\|\,\|E_q\|},\qquad "
        rf"\mathrm{{nearest}}({p}) = {int(neighbours.nearest[p])}"
    )
    st.latex(
        r"1 - \frac{\sum_k \sum_p (s_{p,p+k} - \bar s_k)^2}{\sum_{p<q} (s_{pq} - \bar s)^2}"
        rf" = {scene.found.distances.explained:.4f},\qquad s_{{pq}} = \cos(E_p, E_q)"
    )
    st.latex(
        rf"\bigl|\,\|E_p\| - {norms.median:.4g}\,\bigr| > {core.OUTLIER:g}\cdot {norms.deviation:.4g}"
        r"\quad\Rightarrow\quad \text{outlier},\qquad "
        r"\mathrm{CKA} = \frac{\langle XX^\top, SS^\top\rangle}{\|XX^\top\|\,\|SS^\top\|}"
        rf" = {scene.found.sinusoids.alike:.4f}"
    )


def code(setting: state.Setting, scene: Scene) -> str:
    head = "from posviz import tables\n" if "import tables" not in scene.chosen.code else ""
    return f"""{head}{scene.chosen.code}
values = tables.analyse(table[:{len(scene.values)}])
print(values.neighbours, values.distances, values.norms, values.waves, values.sinusoids, sep="\\n")
"""


def downloads(scene: Scene) -> None:
    found = scene.found

    def arrays() -> dict[str, np.ndarray]:
        return {
            "table": scene.values,
            "cosine": similarity.matrix(scene.values[: found.pairs], "cosine"),
            "nearest": found.neighbours.nearest,
            "mean_cosine": found.distances.mean,
            "spread": found.distances.spread,
            "norms": found.norms.values,
            "components": found.components.scores,
            "periods": found.waves.periods,
            "explained": found.waves.explained,
        }

    save.row(
        "table",
        component="matrix",
        data=bundle(scene),
        title=_("What has a learned table of positions learned?"),
        caption=scene.caption,
        arrays=arrays,
        table=lambda: save.cells(scene.values, scene.chosen.first_row),
        count=scene.values.size + scene.found.pairs**2,
    )
