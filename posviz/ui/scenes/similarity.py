"""Similarity: curves over distance for several encodings, the matrix of one, and the numbers behind them."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import encodings, precision, views
from posviz import similarity as core
from posviz.encodings import Encoding
from posviz.types import Refusal
from posviz.ui import blocks, cached, controls, save, state, table_sources
from posviz.ui.canvas import matrix, ripple
from posviz.ui.lang import _, current, labels
from posviz.ui.scenes import digits, table_upload
from posviz.ui.table_sources import OFF

KEY = "similarity_canvas"
DISTANCES = (1, 2, 5, 10, 20)
FIRST = 8  # dimensions the course sums over when it prints pos0 · pos_k
DRAWN = tuple(name for name, cls in encodings.ENCODINGS.items() if cls.kind != "none")

# Colour of a trained table's curve, by what its rows are: the hue of position, and two beside it.
TRAINED = {"position": (15, 157, 138), "bucket": (84, 112, 140), "distance": (176, 118, 20)}


@dataclass(frozen=True, eq=False)
class Scene:
    """The curves by registry name, that of a trained table, and which one's matrix is shown.

    beside: the table, trained its curve; large: the matrix and the numbers are the table's.
    """

    curves: dict[str, views.Alikeness]
    beside: table_sources.Chosen | None
    trained: views.Alikeness | None
    large: bool
    selected: str
    position: int
    kind: str
    length: int
    left_out: dict[str, Refusal]

    @property
    def chosen(self) -> views.Alikeness:
        return self.trained if self.large else self.curves[self.selected]

    @property
    def title(self) -> str:
        """Whose matrix and numbers these are."""
        return self.beside.title if self.large else encodings.ENCODINGS[self.selected].title(current())


def build(setting: state.Setting) -> Scene:
    state.check()
    kind, length = state.get("kind"), setting.max_len
    chosen = _chosen_name(setting)
    head = state.chosen("head", setting.dims.n_heads, 0)
    curves, left_out = {}, {}
    for name in dict.fromkeys((chosen, *state.get("with"))):
        if name not in DRAWN:
            continue
        try:
            curves[name] = cached.alikeness(
                setting.other(name), setting.dims, length, kind=kind, head=head, seed=setting.seed
            )
        except Refusal as refusal:
            if name == chosen:
                raise
            left_out[name] = refusal
    key = _beside(chosen)
    beside = table_sources.beside(setting, key, *_whats(chosen)) if key != OFF else None
    trained = table_sources.alikeness(beside, length, kind, head) if beside else None
    large = beside is not None and key == state.get("beside")
    rows = trained.matrix.shape[0] if large else length
    return Scene(curves, beside, trained, large, chosen, state.chosen("p", length, rows // 2), kind, length, left_out)


def _chosen_name(setting: state.Setting) -> str:
    return setting.spec.name if setting.spec.kind != "none" else next(iter(state.get("with")), DRAWN[0])


def _whats(name: str) -> tuple[str, ...]:
    """The tables whose values can be compared with an encoding's."""
    return ("bucket", "distance") if encodings.ENCODINGS[name].kind == "bias" else ("position",)


def _beside(name: str) -> str:
    """Key of the trained table among the curves: the one asked for, else the encoding's own twin."""
    asked, offered, own = state.get("beside"), table_sources.fitting(*_whats(name)), f"twin:{name}"
    if asked and (asked in offered or asked not in table_sources.names()):
        return asked  # also what is not there: it is refused, or "off"
    return own if own in offered else OFF


def claim() -> str:
    """One sentence under the title, true of the chosen encoding."""
    cls = encodings.ENCODINGS.get(state.raw("encoding"))
    if cls is not None and cls.capabilities.trainable:
        return _("Before training this encoding knows neither near nor far: its values are noise.")
    return _("Near is alike, far is not; yet it does not slide, it ripples.")


def toolbar(setting: state.Setting) -> None:
    """Which similarity, which encodings, which head."""
    names = controls.encoding_names(DRAWN)
    with table_upload.popover(_("curves"), "beside"):
        controls.several("with", _("encodings"), names)
        name = _chosen_name(setting)
        tables = {OFF: _("none"), **table_sources.fitting(*_whats(name))}
        controls.pick("beside", _("a trained table"), tables, style="select", shown=_beside(name))
        if "position" in _whats(name):
            table_upload.box("beside")
        if any(encodings.ENCODINGS[name].kind == "bias" for name in (*state.get("with"), setting.spec.name)):
            controls.number("head", _("head of the bias curves"), step=1, fallback=0)
    controls.pick(
        "kind",
        _("similarity"),
        {"dot": _("dot product"), "cosine": _("cosine"), "scaled": _("dot / (d/2)")},
        collapsed=True,
    )


def bundle(setting: state.Setting, scene: Scene) -> bytes:
    order = list(encodings.ENCODINGS)
    drawn = [
        (encodings.ENCODINGS[name].title(setting.lang), curve, order.index(name) - 1)
        for name, curve in scene.curves.items()
    ]
    if scene.beside:
        drawn.append((scene.beside.title, scene.trained, TRAINED[scene.beside.what]))
    curves = [
        ripple.Curve(
            label=label,
            mean=np.nan_to_num(curve.mean),
            spread=curve.spread,
            rises=curve.rises,
            axis="right" if curve.is_bias else "left",
            colour=colour,
            two_sided=curve.two_sided,
        )
        for label, curve, colour in drawn
    ]
    return ripple.bundle(
        curves=curves,
        matrix=_matrix(scene),
        selected_curve=len(curves) - 1 if scene.large else list(scene.curves).index(scene.selected),
        position=scene.position,
        kind=scene.kind,
        length=scene.length,
        labels=labels(ripple.LABELS),
        height=520,
        alt=_("Similarity against distance for {names}").format(
            names=_(ripple.LABELS["separator"]).join(
                encodings.ENCODINGS[name].title(setting.lang) for name in scene.curves
            )
        ),
        file="posviz-similarity",
    )


def _matrix(scene: Scene) -> np.ndarray:
    """As :func:`posviz.ui.canvas.ripple.bundle` takes it; empty where a table has no more rows."""
    cells = scene.chosen.matrix
    if isinstance(cells, views.Diagonals):
        return np.array(cells.profile)
    more = scene.length - len(cells.values)
    return np.pad(cells.values, (0, more), constant_values=np.nan) if more else np.array(cells.values)


def show(setting: state.Setting, scene: Scene) -> None:
    def choose() -> None:
        position = state.whole(st.session_state[KEY].position)
        if position is not None:
            state.put("p", position)

    ripple.show(bundle(setting, scene), key=KEY, on_position=choose)
    for refusal in scene.left_out.values():
        blocks.note(refusal.text(setting.lang))


def proof(setting: state.Setting, scene: Scene) -> list[blocks.Number]:
    curve, name = scene.chosen, scene.title
    steps = len(curve.mean) - 1
    relative = encodings.ENCODINGS[scene.selected].capabilities.relative and not scene.large
    spread = float(curve.spread.max())
    exact = spread < 1e-9 * max(1.0, float(np.abs(np.nan_to_num(curve.mean)).max()))
    items = [
        blocks.Number(
            f"{len(curve.rises)} / {steps}",
            _("{name}: steps away from 0 at which the curve rises").format(name=name),
            _("first at {k}").format(k=int(np.abs(curve.rises).min())) if len(curve.rises) else _("it only falls"),
        ),
        blocks.Number(
            blocks.compact(spread),
            _("{name}: largest spread among pairs at one distance").format(name=name),
            _("0: only the distance counts") if exact else _("above 0: the place counts too"),
            exact if relative else None,
        ),
    ]
    error = shift_error(setting.other(scene.selected), setting.dims.d_model, scene.length)
    if error is not None and not scene.large:
        k = state.get("k")
        items.append(
            blocks.Number(
                blocks.compact(error),
                _("PE(p+{k}) − M_{k} PE(p): largest cell over all p").format(k=k),
                _("should be 0"),
                error < 1e-9,
            )
        )
    return items


def digits_error(setting: state.Setting, scene: Scene) -> None:
    """The precision switch, and the error of the selected encoding's matrix where it is not float64."""
    name = digits.switch()
    if name == "float64":
        return
    spec, head = setting.other(scene.selected), state.chosen("head", setting.dims.n_heads, 0)

    def errors() -> np.ndarray:
        return precision.similarity_error(
            spec, setting.dims, scene.length, name, kind=scene.kind, head=head, seed=setting.seed
        )

    texts = labels(matrix.LABELS) | {
        "row": _("Position {row}"),
        "at": _("position {col}"),
        "column": _("Position {col}"),
        "cell": _("positions {row} and {col}"),
    }
    digits.show(
        "similarity",
        name,
        errors,
        axes=(_("position"), _("position")),
        texts=texts,
        remark=_(
            "{encoding}: with fewer digits the similarity depends on the place, not on the distance alone."
        ).format(encoding=spec.title(setting.lang)),
    )


def shift_error(spec: Encoding, d_model: int, length: int) -> float | None:
    """Largest |PE(p+k) - M_k PE(p)|; None where the table is not made of waves."""
    return spec.shift_error(state.get("k"), length, d_model) if hasattr(spec, "shift_error") else None


def tables(setting: state.Setting, scene: Scene) -> None:
    """pos0 · pos_k over all dimensions beside the first eight, as the course prints it."""
    spec = setting.other(scene.selected)
    if spec.kind != "additive" or setting.dims.d_model < FIRST:
        return
    inside = [k for k in DISTANCES if k < scene.length]
    picture = cached.picture(
        spec, setting.dims, max(scene.length, 2), view="table", seed=setting.seed, rows=scene.length
    )
    rows = picture.values()
    lines = [
        (
            label,
            *(f"{float(rows[0, :width] @ rows[k, :width]):.4f}" for k in inside),
        )
        for label, width in (
            (_("all {d} dimensions").format(d=setting.dims.d_model), setting.dims.d_model),
            (_("first {n} dimensions").format(n=FIRST), FIRST),
        )
    ]
    blocks.table(
        ("", *(f"k = {k}" for k in inside)),
        lines,
        _("pos0 · pos_k of {name}").format(name=spec.title(setting.lang)),
        _(
            "The first eight dimensions hold the fastest waves only, so their sum swings; the slow waves in the other dimensions keep near positions alike."
        ),
    )


def formula(setting: state.Setting, scene: Scene) -> None:
    spec = setting.other(scene.selected)
    st.latex(spec.formula)
    if not hasattr(spec, "columns"):
        return
    k = state.get("k")
    controls.number("k", _("shift k"), step=1, width=160)
    frequencies, is_cos = spec.columns(setting.dims.d_model)
    shift = core.shift_map(k, frequencies, is_cos)
    w = float(frequencies[0])
    st.latex(
        rf"PE(p+{k}) = M_{{{k}}}\,PE(p),\qquad \begin{{pmatrix}}\cos {k}\omega_0 & \sin {k}\omega_0\\ -\sin {k}\omega_0 & \cos {k}\omega_0\end{{pmatrix}}"
        rf" = \begin{{pmatrix}}{np.cos(k * w):.4f} & {np.sin(k * w):.4f}\\ {-np.sin(k * w):.4f} & {np.cos(k * w):.4f}\end{{pmatrix}}"
    )
    panel = matrix.Panel(
        source=matrix.Dense(values=shift),
        vmin=-1.0,
        vmax=1.0,
        x_label=_("dimension of PE(p)"),
        y_label=_("dimension of PE(p+k)"),
    )
    names = labels(matrix.LABELS) | {
        "row": _("Row {row}"),
        "cell": _("row {row}, column {col}"),
        "column": _("Column {col}"),
        "at": _("column {col}"),
    }
    data = matrix.bundle([panel], labels=names, alt=_("The matrix M_k"), file="posviz-shift-map", height=460)
    matrix.show(data, key="shift_canvas", height=460)


def badge(setting: state.Setting, scene: Scene) -> str:
    """Where the values come from that no formula gives."""
    found = [scene.beside.badge] if scene.beside else []
    if encodings.ENCODINGS[scene.selected].capabilities.trainable:
        found.insert(0, _("untrained · seed {seed}").format(seed=setting.seed))
    return " | ".join(found)


def code(setting: state.Setting, scene: Scene) -> str:
    if scene.large:
        n, module = scene.trained.matrix.shape[0], scene.beside.module
        head = min(state.chosen("head", setting.dims.n_heads, 0), module.dims.n_heads - 1) if module else 0
        curve = (
            f"views.table_alikeness(table[:{n}], kind={scene.kind!r})"
            if module is None
            else f"views.alikeness_of(module, {n}, kind={scene.kind!r}, head={head})"
        )
        return f"""from posviz import views
{scene.beside.code}
curve = {curve}
values = curve.mean  # by distance; curve.spread is the deviation over positions
print("rises at", curve.rises)
"""
    dims = setting.dims
    return f"""from posviz import Dims, encodings, views

spec = {setting.other(scene.selected).call()}
curve = views.alikeness(
    spec, Dims(d_model={dims.d_model}, n_heads={dims.n_heads}), {scene.length},
    kind={scene.kind!r}, head={state.chosen("head", dims.n_heads, 0)}, seed={setting.seed}, max_len={scene.length},
)
values = curve.mean  # by distance; curve.spread is the deviation over positions
print("rises at", curve.rises)
"""


def _named(scene: Scene) -> list[tuple[str, views.Alikeness]]:
    """All curves by the names of their columns in a file."""
    return [*scene.curves.items(), *([("trained", scene.trained)] if scene.trained else [])]


def downloads(setting: state.Setting, scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        found = {}
        for name, curve in _named(scene):
            found |= {f"{name}_distance": curve.distances, f"{name}_mean": curve.mean, f"{name}_spread": curve.spread}
        return found

    def table() -> list[list[object]]:
        lines: list[list[object]] = [["encoding", "distance", "mean", "spread"]]
        for name, curve in _named(scene):
            lines += [
                [name, *line]
                for line in zip(curve.distances.tolist(), curve.mean.tolist(), curve.spread.tolist(), strict=True)
            ]
        return lines

    save.row(
        "similarity",
        component="ripple",
        data=bundle(setting, scene),
        title=_("How alike are two positions?"),
        caption=setting.parameters,
        arrays=arrays,
        table=table,
    )
