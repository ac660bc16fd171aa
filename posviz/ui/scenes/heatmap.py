"""Heatmap: the additive table, the bias of each head, or the rotation, cell by cell."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import precision, views
from posviz.encodings import Encoding
from posviz.types import Dims, Refusal
from posviz.ui import blocks, cached, controls, save, state, table_sources
from posviz.ui.canvas import matrix as canvas
from posviz.ui.lang import N_, _, named
from posviz.ui.scenes import cells, digits, table_upload

KEY = "heatmap_canvas"
FAINT = 8  # times smaller than the other picture's: no longer seen beside it

VIEWS = {
    "table": N_("table"),
    "cos": N_("cos mθ"),
    "sin": N_("sin mθ"),
    "angle": N_("angle mθ"),
    "bias": N_("bias"),
    "distance_table": N_("vector for each distance"),
    "grid": N_("patches"),
}
CLAIMS = {
    "table": N_(
        "Each row is one position, each column one dimension: the row is what is added to the word at that position."
    ),
    "waves": N_("Fast stripes left, slow ones right: a clock with many hands."),
    "rotary": N_("Each column is one pair of dimensions: left ones turn fast, right ones slowly."),
    "bias": N_(
        "What is added to the score of query and key: every head has its own picture, and only the distance counts."
    ),
    "distance_table": N_("One vector for each distance from −K to K; beyond K the last one serves."),
    "grid": N_("Click a patch: how alike does the encoding make it to every other patch of the image?"),
    "content": N_("Here the content counts too: the picture is for queries and keys of ones."),
    "share": N_("Up to a threshold only the distance counts; beyond it, the place counts too."),
    "conv": N_("What a convolution adds to equal words: only the ends tell where one is."),
    "none": N_("Nothing is added anywhere."),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """The chosen picture, perhaps a second one with other parameters, and the chosen cell."""

    picture: views.Picture | None
    second: views.Picture | None
    view: str
    head: int
    row: int
    col: int
    titles: tuple[str, str]
    badge: str
    beside: table_sources.Chosen | None = None  # whose picture the second one is


def claim(setting: state.Setting) -> str:
    """One sentence under the title, for the kind of picture that follows."""
    try:
        spec = setting.spec
    except Refusal:
        return ""
    return _(CLAIMS[_claimed(spec)])


def _claimed(spec: Encoding) -> str:
    """Which of the claims is true of this encoding's picture."""
    traits = spec.capabilities
    try:
        if _choose_view(spec) == "grid":
            return "grid"
    except Refusal:
        pass
    if "distance_table" in spec.pictures:
        return "distance_table"
    if spec.kind == "bias":
        return "content" if traits.content else "bias" if traits.relative else "share"
    if spec.kind == "additive":
        return "conv" if traits.content else "waves" if hasattr(spec, "columns") else "table"
    return spec.kind  # "none" or "rotary"


def build(setting: state.Setting) -> Scene:
    state.check()
    spec, dims = setting.spec, setting.dims
    view = _choose_view(spec)
    picture = _picture(setting, spec, dims, view)
    if picture is None:
        return Scene(None, None, "", 0, 0, 0, ("", ""), "")
    beside = _beside(setting)
    second, titles = _second(setting, view, beside)
    head = state.chosen("head", len(picture.sources), 0)
    rows, cols = picture.shape
    # The cell that the formula explains: one with a story, until somebody clicks.
    row = state.chosen("row", rows, rows // 2 if view in ("bias", "grid") else 37)
    col = state.chosen("col", cols, cols // 2 if view == "grid" else rows // 4 if view == "bias" else cols * 21 // 64)
    badge = ""
    if spec.capabilities.trainable:
        badge = _("untrained · seed {seed}").format(seed=setting.seed)
        if beside:
            badge += " | " + beside.badge
    return Scene(picture, second, view, head, row, col, titles, badge, beside)


def _choose_view(spec: Encoding) -> str | None:
    asked = state.get("view")
    if not spec.pictures:
        return None
    if asked in spec.pictures:
        return asked
    return spec.pictures[0]  # another encoding's view: this one does not have it


def _rows(spec: Encoding, max_len: int) -> int:
    """A table that ends is drawn a little beyond its end, so that the end is seen."""
    return max_len if spec.capabilities.unbounded else max_len + max(1, max_len // 8)


def _picture(setting: state.Setting, spec: Encoding, dims: Dims, view: str | None) -> views.Picture | None:
    patch = None
    if view == "grid":
        patch = tuple(
            state.chosen(name, size, size // 2) for name, size in (("row", spec.grid_height), ("col", spec.grid_width))
        )
    rows = _rows(spec, setting.max_len)
    return cached.picture(spec, dims, setting.max_len, view=view, seed=setting.seed, rows=rows, patch=patch)


def compare_knobs(spec: Encoding) -> list[str]:
    """Which parameters the second picture may change."""
    found = []
    if "base" in spec.parameters():
        found.append("base2")
    if spec.kind in ("additive", "rotary"):
        found.append("d_model2")
    if spec.kind in ("rotary", "bias"):
        found.append("heads2")
    return found


def _beside(setting: state.Setting) -> table_sources.Chosen | None:
    """The trained table that the second picture shows, if one is asked for and this encoding has any."""
    offered = tables_beside(setting.spec)
    if state.get("compare") != "trained" or not offered:
        return None
    asked = state.get("beside")
    if asked in ("", table_sources.OFF) or (asked in table_sources.names() and asked not in offered):
        asked = next(iter(offered))  # nobody asked, or for another encoding's table: this one has its own
    return table_sources.beside(setting, asked, table_sources.WHAT[setting.spec.name])


def _second(
    setting: state.Setting, view: str, beside: table_sources.Chosen | None
) -> tuple[views.Picture | None, tuple[str, str]]:
    spec, dims = setting.spec, setting.dims
    compare = state.get("compare")
    if beside:
        # the encoding is chosen already, and a long name would be cut
        title = _("trained twin") if beside.key.startswith("twin:") else beside.title
        return table_sources.picture(beside, view, setting.max_len), (_("untrained"), title)
    if compare != "on":
        return None, ("", "")
    offered = compare_knobs(spec)
    d_model = state.get("d_model2") if "d_model2" in offered else None
    n_heads = state.get("heads2") if "heads2" in offered else None
    other_dims = Dims(
        d_model=dims.d_model if d_model is None else d_model, n_heads=dims.n_heads if n_heads is None else n_heads
    )
    other = setting.other(spec.name, **({"base": state.get("base2")} if "base2" in offered else {}))
    second = _picture(setting, other, other_dims, view)
    return second, _difference((spec, dims), (other, other_dims))


def tables_beside(spec: Encoding) -> dict[str, str]:
    """Key -> title of the trained tables that can stand beside an encoding whose table training changes."""
    what = table_sources.WHAT.get(spec.name)
    return table_sources.fitting(what) if what else {}


def _difference(first: tuple[Encoding, Dims], second: tuple[Encoding, Dims]) -> tuple[str, str]:
    """What tells two pictures apart, as their titles: ("base 10000", "base 100")."""
    described = [{**spec.parameters(), "d_model": dims.d_model, "H": dims.n_heads} for spec, dims in (first, second)]
    names = [name for name in described[0] if described[0][name] != described[1][name]] or ["d_model"]
    titles = [" · ".join(f"{name} {which[name]:g}" for name in names) for which in described]
    return titles[0], titles[1]


def toolbar(setting: state.Setting) -> None:
    """Which view, and the second set of parameters."""
    spec = setting.spec
    if len(spec.pictures) > 1:
        current = _choose_view(spec)
        controls.pick("view", _("view"), {v: _(VIEWS[v]) for v in spec.pictures}, shown=current, collapsed=True)
    offered_tables = tables_beside(spec)
    if not compare_knobs(spec) and not offered_tables:
        return
    if state.get("compare") == "on":
        offered = compare_knobs(spec)
        if "base2" in offered:
            controls.number("base2", _("second base"), step=100, width=140)
        if "d_model2" in offered:
            controls.number("d_model2", _("second d_model"), step=2, width=140, fallback=setting.dims.d_model)
        if "heads2" in offered:
            controls.number("heads2", _("second heads"), step=1, width=140, fallback=setting.dims.n_heads)
    choices = {"off": _("single"), "on": _("compare")}
    if offered_tables:
        choices["trained"] = _("beside a trained one")
        if state.get("compare") == "trained":
            controls.pick("beside", _("trained table"), offered_tables, style="select", collapsed=True, width=240)
            if table_sources.WHAT[spec.name] == "position":
                with table_upload.popover(_("upload a table"), "beside"):
                    table_upload.box("beside")
    controls.pick("compare", _("compare"), choices, collapsed=True)


def bundle(setting: state.Setting, scene: Scene) -> bytes:
    picture = scene.picture
    spec = setting.spec
    cross = (scene.row, scene.col)
    limit = max(p.limit for p in (picture, scene.second) if p)  # one colour scale for both
    given = {"limit": limit, "cross": cross, "window": st.session_state.get(KEY, {}).get("window")}
    panels = [cells.panel(picture, scene.titles[0], head=scene.head, **given)]
    if scene.second:
        head = min(scene.head, len(scene.second.sources) - 1)
        panels.append(cells.panel(scene.second, scene.titles[1], head=head, **given))
    thumbnails = None
    if len(picture.sources) > 1:
        thumbnails = [
            canvas.Thumbnail(label=_("head {head}").format(head=h), source=cells.source(picture, h))
            for h in range(len(picture.sources))
        ]
    return canvas.bundle(
        panels,
        labels=cells.picture_labels(scene.view),
        alt=_("Heatmap of {name}, {rows} rows, {cols} columns").format(
            name=spec.title(setting.lang), rows=picture.shape[0], cols=picture.shape[1]
        ),
        file=f"posviz-{spec.name}-{scene.view}",
        selected=(scene.row, scene.col),
        thumbnails=thumbnails,
        head=scene.head,
        height=canvas.HEIGHT,
    )


def show(setting: state.Setting, scene: Scene) -> None:
    canvas.show(bundle(setting, scene), key=KEY, on_cell=_clicked, on_head=_head_clicked)


def _clicked() -> None:
    cell = st.session_state[KEY].cell
    if not isinstance(cell, Mapping):
        return
    place = {name: state.whole(cell.get(name)) for name in ("row", "col")}
    for name, at in place.items():
        if None not in place.values():
            state.put(name, at)


def _head_clicked() -> None:
    head = state.whole(st.session_state[KEY].head)
    if head is not None:
        state.put("head", head)


def value(scene: Scene) -> float:
    """The chosen cell's value; NaN where there is none."""
    if scene.row >= scene.picture.defined_rows:
        return float("nan")
    source = scene.picture.sources[scene.head]
    return float(source.cells(scene.row, scene.row + 1, scene.col, scene.col + 1)[0, 0])


def substituted(setting: state.Setting, scene: Scene) -> None:
    """The formula of the chosen cell with its numbers; and what the second picture does not show."""
    if scene.beside and scene.beside.what == "position" and (cut := table_sources.cut(scene.beside.values)):
        blocks.note(named(scene.beside.title, cut))
    if scene.second and (faint := _faint(scene)):
        blocks.note(faint)
    number = value(scene)
    if np.isnan(number):
        blocks.note(
            _("This cell does not exist: the table ends at position {last}, or the mask hides it.").format(
                last=setting.max_len - 1
            )
        )
        return
    st.latex(setting.spec.explain(setting.dims, scene.view, scene.row, scene.col, number, scene.head))


def _faint(scene: Scene) -> str:
    """That one of two pictures is hardly seen on the scale that both share, where that is so."""
    ends = sorted(zip((scene.picture.limit, scene.second.limit), scene.titles, strict=True))
    (small, faint), (large, _strong) = ends
    if large < FAINT * small:
        return ""
    return _("{name}: its numbers are {times} times smaller, so on the scale of both it is nearly blank").format(
        name=faint, times=f"{large / small:.0f}"
    )


def digits_error(scene: Scene) -> None:
    """The precision switch, and the chosen head's error where it is not float64."""
    name = digits.switch()
    if name == "float64":
        return

    def errors() -> np.ndarray:
        return precision.picture_error(scene.picture, name).values(scene.head)

    rows, columns = cells.AXES[scene.view]
    waves = isinstance(scene.picture.sources[0], views.Waves)
    remark = _("Positions, frequencies and angles are all computed in {name}, as careless code does it.").format(
        name=name
    )
    digits.show(
        "heatmap",
        name,
        errors,
        axes=(_(rows), _(columns)),
        texts=cells.picture_labels(scene.view),
        first_row=scene.picture.first_row,
        remark=remark if waves else _("Each number is rounded to {name} once.").format(name=name),
    )


def proof(setting: state.Setting, scene: Scene) -> list[blocks.Number]:
    length = min(setting.max_len, views.MAX_SQUARE) if setting.spec.kind == "bias" else setting.max_len
    found = cached.claims(setting.spec, setting.dims, setting.max_len, length=length, seed=setting.seed)
    return [
        blocks.Number(blocks.compact(c.value), c.label(setting.lang), c.expected(setting.lang), c.holds) for c in found
    ]


def code(setting: state.Setting, scene: Scene) -> str:
    """The snippet of the picture; of a grid, for the chosen patch."""
    return setting.spec.snippet(setting.dims, setting.max_len, scene.view, setting.seed, scene.picture.patch)


def formula(setting: state.Setting) -> None:
    st.latex(setting.spec.formula)
    blocks.note(setting.spec.describe(setting.lang))
    if setting.spec.capabilities.trainable:
        blocks.note(setting.spec.starts(setting.lang))


def downloads(setting: state.Setting, scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        count = len(scene.picture.sources)
        return {f"head{h}" if count > 1 else scene.view: scene.picture.values(h) for h in range(count)}

    save.row(
        f"{setting.spec.name}-{scene.view}",
        component="matrix",
        data=bundle(setting, scene),
        title=_("What does each position's encoding look like?"),
        caption=setting.parameters,
        arrays=arrays,
        count=scene.picture.shape[0] * scene.picture.shape[1] * len(scene.picture.sources),
        table=lambda: save.cells(scene.picture.values(scene.head), scene.picture.first_row),
    )
