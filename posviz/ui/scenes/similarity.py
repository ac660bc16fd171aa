"""Similarity: curves over distance for several encodings, the matrix of one, and the numbers behind them."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import encodings, precision, views
from posviz import similarity as core
from posviz.encodings import Encoding
from posviz.models.twins import corpus, store
from posviz.types import Refusal
from posviz.ui import blocks, cached, controls, save, state
from posviz.ui.canvas import matrix, ripple
from posviz.ui.lang import _, labels
from posviz.ui.scenes import digits

KEY = "similarity_canvas"
DISTANCES = (1, 2, 5, 10, 20)
FIRST = 8  # dimensions the course sums over when it prints pos0 · pos_k
DRAWN = tuple(name for name, cls in encodings.ENCODINGS.items() if cls.kind != "none")

# Colours of the trained twins' curves: the hue of position, and two beside it.
TRAINED = {"learned": (15, 157, 138), "t5": (84, 112, 140), "shaw": (176, 118, 20)}


@dataclass(frozen=True, eq=False)
class Scene:
    """The curves by registry name, which one's matrix is shown, and those of trained twins."""

    curves: dict[str, views.Alikeness]
    trained: dict[str, views.Alikeness]
    selected: str
    position: int
    kind: str
    length: int
    left_out: dict[str, Refusal]

    @property
    def chosen(self) -> views.Alikeness:
        return self.curves[self.selected]


def build(setting: state.Setting) -> Scene:
    state.check()
    kind, length = state.get("kind"), setting.max_len
    chosen = setting.spec.name if setting.spec.kind != "none" else next(iter(state.get("with")), DRAWN[0])
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
    trained = {}
    if state.get("trained") == "on":
        # of the chosen encoding alone: a second ragged curve behind the others would only blur their story
        trained = {chosen: _trained(chosen, length, kind, head)} if _has_twin(chosen) else {}
    return Scene(curves, trained, chosen, state.chosen("p", length, length // 2), kind, length, left_out)


def _has_twin(name: str) -> bool:
    return encodings.ENCODINGS[name].capabilities.trainable and name in store.available()


def _trained(name: str, length: int, kind: str, head: int) -> views.Alikeness:
    """A trained twin's curve; of a table only the rows that training has seen."""
    twin = store.load(name).model
    seen = corpus.TRAINED_LEN - 1 if twin.spec.kind == "additive" else length
    return cached.twin_alikeness(name, min(length, seen), kind, min(head, twin.config.n_heads - 1))


def claim() -> str:
    """One sentence under the title, true of the chosen encoding."""
    cls = encodings.ENCODINGS.get(state.raw("encoding"))
    if cls is not None and cls.capabilities.trainable:
        return _("Before training this encoding knows neither near nor far: its values are noise.")
    return _("Near is alike, far is not; yet it does not slide, it ripples.")


def toolbar(setting: state.Setting) -> None:
    """Which similarity, which encodings, which head."""
    names = controls.encoding_names(DRAWN)
    with st.popover(_("encodings")):
        controls.several("with", _("curves"), names)
        if store.available():
            controls.toggle("trained", _("a trained twin beside the chosen encoding"))
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
    drawn = [(name, encodings.ENCODINGS[name].title(setting.lang), curve) for name, curve in scene.curves.items()]
    drawn += [
        (name, _("{name}, trained twin").format(name=encodings.ENCODINGS[name].title(setting.lang)), curve)
        for name, curve in scene.trained.items()
    ]
    curves = [
        ripple.Curve(
            label=label,
            mean=np.nan_to_num(curve.mean),
            spread=curve.spread,
            rises=curve.rises,
            axis="right" if curve.is_bias else "left",
            colour=order.index(name) - 1 if curve is scene.curves.get(name) else TRAINED[name],
            two_sided=curve.two_sided,
        )
        for name, label, curve in drawn
    ]
    cells = scene.chosen.matrix
    return ripple.bundle(
        curves=curves,
        matrix=np.array(cells.profile if isinstance(cells, views.Diagonals) else cells.values),
        selected_curve=list(scene.curves).index(scene.selected),
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


def show(setting: state.Setting, scene: Scene) -> None:
    def choose() -> None:
        position = state.whole(st.session_state[KEY].position)
        if position is not None:
            state.put("p", position)

    ripple.show(bundle(setting, scene), key=KEY, on_position=choose)
    for refusal in scene.left_out.values():
        blocks.note(refusal.text(setting.lang))


def proof(setting: state.Setting, scene: Scene) -> list[blocks.Number]:
    curve = scene.chosen
    name = encodings.ENCODINGS[scene.selected].title(setting.lang)
    steps = len(curve.mean) - 1
    relative = encodings.ENCODINGS[scene.selected].capabilities.relative
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
    if error is not None:
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
        "pos0 · pos_k",
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


def code(setting: state.Setting, scene: Scene) -> str:
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


def downloads(setting: state.Setting, scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        found = {}
        for name, curve in scene.curves.items():
            found |= {f"{name}_distance": curve.distances, f"{name}_mean": curve.mean, f"{name}_spread": curve.spread}
        return found

    def table() -> list[list[object]]:
        lines: list[list[object]] = [["encoding", "distance", "mean", "spread"]]
        for name, curve in scene.curves.items():
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
