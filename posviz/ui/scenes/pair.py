"""Two encodings side by side in the pictures of the other pages."""

import numpy as np
import streamlit as st

from posviz import compare, encodings, views
from posviz.encodings import Encoding
from posviz.text import visible
from posviz.types import AttentionTrace, Dims
from posviz.ui import blocks, cached, controls, state
from posviz.ui.canvas import clocks, matrix, order, ripple
from posviz.ui.lang import N_, _, labels
from posviz.ui.scenes import cells, rotation

HEIGHT = 430
VIEWS = {
    "look": N_("look"),
    "similarity": N_("similarity"),
    "rotation": N_("rotation"),
    "order": N_("order"),
    "attention": N_("attention"),
}
CLOCKS = 700  # px: in half of the page the parts of the picture stand one under the other


def toolbar() -> None:
    """Which two, and in which picture."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="pair_row"):
        for name, label in (("one", _("first")), ("two", _("second"))):
            controls.pick(name, label, controls.encoding_names(), style="select", width=220)
        controls.pick("pair_view", _("side by side in"), {key: _(text) for key, text in VIEWS.items()})


def show(setting: state.Setting) -> None:
    specs = [setting.other(state.get(name)) for name in ("one", "two")]
    draw = {
        "look": _look,
        "similarity": _similarity,
        "rotation": _rotation,
        "order": _order,
        "attention": _attention,
    }
    draw[state.get("pair_view")](setting, specs)


def _columns(setting: state.Setting, specs: list[Encoding], draw) -> None:
    for i, (place, spec) in enumerate(zip(st.columns(2), specs, strict=True)):
        with place:
            draw(i, spec)


def _look(setting: state.Setting, specs: list[Encoding]) -> None:
    def draw(i: int, spec: Encoding) -> None:
        title = spec.title(setting.lang)
        if not spec.pictures:
            blocks.note(_("{name} adds nothing: there is nothing to draw.").format(name=title))
            return
        _picture(setting, f"pair_look_{i}", spec, spec.pictures[0])

    _columns(setting, specs, draw)


def _picture(setting: state.Setting, key: str, spec: Encoding, view: str) -> None:
    rows, title = setting.max_len, spec.title(setting.lang)
    found = cached.picture(spec, setting.dims, rows, view=view, seed=setting.seed, rows=rows)
    _matrix(key, cells.panel(found, title), cells.picture_labels(found.view), title)


def _rotation(setting: state.Setting, specs: list[Encoding]) -> None:
    """The clocks, where a clock can show it: pair i turns by its position times a frequency."""

    def draw(i: int, spec: Encoding) -> None:
        title = spec.title(setting.lang)
        if spec.turns(setting.dims.d_head) is not None:
            blocks.caption(title)
            scene = rotation.scene_of(setting, spec)
            clocks.show(rotation.bundle(scene, CLOCKS), key=f"pair_clocks_{i}")
        elif spec.kind == "rotary":
            _picture(setting, f"pair_angles_{i}", spec, "angle")
            blocks.note(
                _("{name} does more than turn each pair by its position: these are its angles.").format(name=title)
            )
        else:
            blocks.note(_("{name} turns nothing: queries and keys stay as they are.").format(name=title))

    _columns(setting, specs, draw)


def _matrix(key: str, panel: matrix.Panel, texts: dict[str, str], title: str) -> None:
    data = matrix.bundle([panel], labels=texts, alt=title, file=f"posviz-{key}", height=HEIGHT)
    matrix.show(data, key=key, height=HEIGHT)


def _attention(setting: state.Setting, specs: list[Encoding]) -> None:
    head = state.chosen("head", setting.dims.n_heads, 0)

    def draw(i: int, spec: Encoding) -> None:
        trace = _traces(setting, spec)[0]
        names = [visible(piece) for piece in trace.tokens.pieces]
        title = _("{name}: attention of A, head {head}").format(name=spec.title(setting.lang), head=head)
        weights = np.where(trace.allowed, trace.weights[head].astype(np.float64), np.nan)
        panel = matrix.Panel(
            source=matrix.Dense(values=weights),
            vmin=0.0,
            vmax=1.0,
            scale="a",
            title=title,
            x_label=_("key"),
            y_label=_("query"),
            row_labels=names,
            col_labels=names,
        )
        _matrix(f"pair_attention_{i}", panel, cells.picture_labels("bias"), title)

    _columns(setting, specs, draw)


def _traces(setting: state.Setting, spec: Encoding) -> tuple[AttentionTrace, AttentionTrace]:
    layer = {"seed": setting.seed, "mask": setting.mask, "max_len": setting.max_len, "precision": setting.precision}
    a, b = (cached.trace(setting.tokens(side), spec, setting.dims, **layer) for side in "ab")
    return a, b


def _similarity(setting: state.Setting, specs: list[Encoding]) -> None:
    dims: Dims = setting.dims
    kind, length = state.get("kind"), setting.max_len
    drawn = list({spec.name: spec for spec in specs if spec.kind != "none"}.values())
    if not drawn:
        blocks.note(_("Without position all positions are the same: there is no curve."))
        return
    curves = []
    first = None
    for spec in drawn:
        found = cached.alikeness(spec, dims, length, kind=kind, head=0, seed=setting.seed)
        first = first or found
        curves.append(
            ripple.Curve(
                label=spec.title(setting.lang),
                mean=np.nan_to_num(found.mean),
                spread=found.spread,
                rises=found.rises,
                axis="right" if found.is_bias else "left",
                colour=list(encodings.ENCODINGS).index(spec.name) - 1,
                two_sided=found.two_sided,
            )
        )
    square = first.matrix
    data = ripple.bundle(
        curves=curves,
        matrix=np.array(square.profile if isinstance(square, views.Diagonals) else square.values),
        selected_curve=0,
        position=state.chosen("p", length, length // 2),
        kind=kind,
        length=length,
        labels=labels(ripple.LABELS),
        height=HEIGHT + 60,
        alt=_("Similarity against distance for {names}").format(
            names=_(", ").join(spec.title(setting.lang) for spec in drawn)
        ),
        file="posviz-pair-similarity",
    )
    ripple.show(data, key="pair_similarity")


def _order(setting: state.Setting, specs: list[Encoding]) -> None:
    pairs = compare.match(setting.tokens("a"), setting.tokens("b"))
    panels, bars = [], []
    for spec in specs:
        a, b = _traces(setting, spec)
        difference = compare.outputs(a, b, pairs)
        title = spec.title(setting.lang)
        panels.append({"title": title, "a": a.residual, "b": b.residual, "delta": difference.per_token})
        value = None if np.isnan(difference.tokens) else difference.tokens
        bars.append({"label": title, "value": value, "selected": False})
    data = order.bundle(
        tokens_a=[visible(piece) for piece in a.tokens.pieces],
        tokens_b=[visible(piece) for piece in b.tokens.pieces],
        panels=panels,
        matches=pairs,
        vmax=float(np.quantile(np.abs(np.concatenate([p[s].ravel() for p in panels for s in "ab"])), 0.98)),
        bars=bars,
        floor={"float64": 1e-18}.get(setting.precision, 1e-9),
        noise=256 * float(np.finfo(np.float32 if setting.precision == "float32" else np.float64).eps),
        labels=labels(order.LABELS),
        alt=_("Output vectors of both sentences, under both encodings"),
        file="posviz-pair-order",
    )
    order.show(data, key="pair_order")
