"""Surgery: a trained model on both sentences, before and after its positions were changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from posviz import compare
from posviz.models import surgery
from posviz.models.base import Model
from posviz.models.surgery import CHANGES, Operation
from posviz.models.twins import store
from posviz.text import visible
from posviz.types import AttentionTrace, Refusal, Text, Tokens
from posviz.ui import blocks, cached, controls, state, waiting
from posviz.ui.canvas import heads as canvas
from posviz.ui.lang import N_, _, current, labels
from posviz.ui.scenes import choose_model, studio
from posviz.ui.scenes.attention import PART_CELLS, scale_text

KEY = "surgery_canvas"
STAGES = {"before": N_("intact"), "after": N_("operated"), "change": N_("what changed")}
_FAILED = "_surgery_failed"  # in the session: the model that could not be opened in this run, and why
TOLERANCE = 3e-4  # of a weight: float32 angles at positions up to a million
LONGEST_TOLD = 100_000  # positions that float32 angles still tell apart to that tolerance


@dataclass(frozen=True, eq=False)
class Scene:
    """A model, what was done to it, and both sentences before and after. layer counts from 0."""

    model: Model
    name: str
    outcome: surgery.Outcome
    stage: str

    @property
    def operation(self) -> Operation:
        return self.outcome.operation

    @cached_property
    def layer(self) -> int:
        """The chosen layer, else the one that changes most."""
        chosen = state.get("slayer")
        if chosen is not None and chosen <= self.model.n_layers:
            return chosen - 1
        return int(self.outcome.changes.max((0, 2)).argmax())

    @property
    def tokens(self) -> tuple[Tokens, Tokens]:
        return tuple(trace.tokens for trace in self.outcome.before)

    def layers(self, stage: str) -> tuple[AttentionTrace, AttentionTrace]:
        traces = self.outcome.before if stage == "before" else self.outcome.after
        return tuple(trace.layers[self.layer] for trace in traces)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """(H, L, L) of A and of B: weights of the shown stage, or how much each changed."""
        if self.stage != "change":
            return tuple(layer.weights for layer in self.layers(self.stage))
        pairs = zip(self.layers("before"), self.layers("after"), strict=True)
        return tuple(np.abs(new.weights - old.weights) for old, new in pairs)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return compare.match(*self.tokens)


def claim() -> str:
    return _("The weights stay as they are; only what the words are told about their places changes.")


# ---------------------------------------------------------------- controls
def _name() -> str:
    """The model asked for; where nobody asked, or none of these pages' untrained layer, a twin that has positions."""
    name = studio.chosen_name()
    if state.raw("smodel") or name.removeprefix(studio.TWIN) not in ("none", "untrained"):
        return name
    return next((f"{studio.TWIN}{twin}" for twin in store.available() if twin != "none"), name)


def _operation(model: Model) -> Operation:
    """What is asked for; the first that there is where the model has no such change."""
    asked, allowed = state.get("op"), surgery.changes_for(model)
    return asked if asked is not None and asked.change in allowed else Operation(allowed[0])


def _model(setting: state.Setting, name: str) -> Model:
    """The model, opened; one that could not be is not tried again in the same run, a hub may take ten seconds to fail."""
    failed = st.session_state.get(_FAILED)
    if failed and failed[0] == name:
        raise failed[1].kept()
    try:
        return studio.find_model(setting, name)
    except Refusal as refusal:
        st.session_state[_FAILED] = (name, refusal.kept())
        raise


def toolbar(setting: state.Setting) -> None:
    """Which model, and what is done to it."""
    st.session_state.pop(_FAILED, None)
    with st.container(horizontal=True, vertical_alignment="center"):
        name = _name()
        names = {key: title for key, title in studio.model_names().items() if key not in ("untrained", "twin:none")}
        names.setdefault(name, name)
        controls.pick("smodel", _("model"), names, style="select", collapsed=True, width=230, shown=name)
        place = st.container(horizontal=True, vertical_alignment="center")
        choose_model.other(short=True)  # else the number does not fit beside the changes at 1280 px
    with place:
        if not choose_model.agreed(name):
            return
        model = _model(setting, name)
        operation = _operation(model)
        _changes(model, operation)
        _amount(operation)


def _changes(model: Model, operation: Operation) -> None:
    key, lang = "w_op", current()
    st.session_state[key] = operation.change
    st.segmented_control(
        _("operation"),
        surgery.changes_for(model),
        format_func=lambda change: CHANGES[change].title(lang),
        key=key,
        required=True,
        label_visibility="collapsed",
        on_change=lambda: state.put("op", st.session_state[key]),
    )


def _amount(operation: Operation) -> None:
    amount = CHANGES[operation.change].amount
    if amount is None:
        return
    key = "w_op_amount"
    st.session_state[key] = operation.amount

    def commit() -> None:
        if st.session_state[key] is not None:
            state.put("op", f"{operation.change}.{st.session_state[key]}")

    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        blocks.label(amount(current()))
        st.number_input(amount(current()), key=key, step=1, width=130, label_visibility="collapsed", on_change=commit)


def asks() -> bool:
    """Whether a link names a model that has to be agreed to first; then that is the page."""
    if choose_model.agreed(_name()):
        return False
    choose_model.ask(_name())
    return True


def build(setting: state.Setting) -> Scene:
    state.check()
    for side in "ab":
        if not state.raw(side):
            setting.tokens(side)  # an empty sentence is refused in the same words as everywhere
    name = _name()
    model = _model(setting, name)
    operation = _operation(model)
    with waiting.shown() as progress, cached.telling(progress):
        outcome = cached.outcome(model, name, state.raw("a"), state.raw("b"), operation)
    scene = Scene(model, name, outcome, state.get("stage"))
    cells = max(trace.layers[0].dims.n_heads * len(trace.tokens) ** 2 for trace in scene.outcome.before)
    if cells > canvas.MAX_CELLS:
        raise Refusal(
            Text(
                "a layer of this model has {cells:,} weights on this sentence; up to {limit:,} are drawn: "
                "take a shorter one",
                "这个模型的一层在这个句子上有 {cells:,} 个权重；最多画 {limit:,} 个：请缩短句子",
            ),
            field="a",
            cells=cells,
            limit=canvas.MAX_CELLS,
        )
    return scene


# ---------------------------------------------------------------- the picture
def strip(scene: Scene) -> None:
    """The sentences in the model's own pieces, each with the position it is told; then stage and layer."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="strip_row"):
        told = scene.operation if scene.stage != "before" else None
        blocks.strip(*scene.tokens, places=tuple(_told(told, len(tokens)) for tokens in scene.tokens))
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            controls.pick("stage", _("stage"), {stage: _(text) for stage, text in STAGES.items()}, collapsed=True)
            layers = {n + 1: _("layer {n}").format(n=n + 1) for n in range(scene.model.n_layers)}
            controls.pick(
                "slayer", _("layer"), layers, style="select", collapsed=True, width=120, shown=scene.layer + 1
            )


def _told(operation: Operation | None, length: int) -> list[str]:
    """What stands beside each token: its position, Ē for the mean row, nothing without a bias."""
    if operation is None:
        return [str(i) for i in range(length)]
    told = operation.positions(length)
    if told.mean:
        return ["Ē"] * length
    return [str(i) for i in told.ids] if told.ids is not None else [""] * length


def bundle(scene: Scene) -> bytes:
    a, b = scene.weights
    i, j = np.array(scene.pairs, dtype=int).reshape(-1, 2).T
    layer_a, layer_b = scene.layers(scene.stage)
    change = scene.stage == "change"
    texts = labels(canvas.LABELS)
    if change:
        texts |= {
            "weight_a": _("change in A"),
            "weight_b": _("change in B"),
            "weight": _("change of the weight"),
            "row_weights": _("how much this query's weights changed"),
            "legend_a": _("change of a weight in A, 0 to 1"),
            "legend_b": _("change of a weight in B, 0 to 1"),
            "hint": _("Point at a cell to see how much its weight changed; click a head's name to open the head."),
        }
    return canvas.bundle(
        tokens_a=[visible(piece) for piece in layer_a.tokens.pieces],
        tokens_b=[visible(piece) for piece in layer_b.tokens.pieces],
        weights_a=a,
        weights_b=b,
        diff_tokens=None if change else [visible(layer_a.tokens.pieces[k]) for k in i],
        difference=None if change else a[:, i[:, None], i] - b[:, j[:, None], j],
        pairs=None if change else scene.pairs,
        allowed_a=layer_a.allowed,
        allowed_b=layer_b.allowed,
        allowed_d=None if change else layer_a.allowed[i[:, None], i] | layer_b.allowed[j[:, None], j],
        parts_a=None if change else _parts(layer_a),
        parts_b=None if change else _parts(layer_b),
        scale=scale_text(layer_a),
        selected=_selected(scene),
        labels=texts,
        alt=_("{stage}: weights of layer {layer} for both sentences").format(
            stage=_(STAGES[scene.stage]), layer=scene.layer + 1
        ),
        file="posviz-surgery",
    )


def _parts(layer: AttentionTrace) -> dict[str, np.ndarray] | None:
    cells = (len(layer.parts) + 1) * layer.dims.n_heads * len(layer.tokens) ** 2
    return {**layer.parts, "scores": layer.scores} if cells <= PART_CELLS else None


def _selected(scene: Scene) -> canvas.Cell:
    """The chosen cell, else the one of A whose weight changed most."""
    asked = state.get("cell")
    if asked:
        side, h, i, j = asked
        length = {"a": len(scene.tokens[0]), "b": len(scene.tokens[1]), "d": len(scene.pairs)}[side]
        drawn = side != "d" or scene.stage != "change"
        if drawn and h < scene.weights[0].shape[0] and max(i, j) < length:
            return {"sentence": side, "head": h, "row": i, "col": j}
    changed = np.abs(scene.layers("after")[0].weights - scene.layers("before")[0].weights)
    h, i, j = np.unravel_index(int(changed.argmax()), changed.shape)
    return {"sentence": "a", "head": int(h), "row": int(i), "col": int(j)}


def show(scene: Scene) -> None:
    canvas.show(bundle(scene), key=KEY, on_cell=_pinned)


def _pinned() -> None:
    cell = st.session_state[KEY].cell
    places = [state.whole(cell.get(name)) for name in ("head", "row", "col")] if isinstance(cell, Mapping) else []
    if cell is None:
        state.put("cell", "")
    elif None not in places and cell.get("sentence") in ("a", "b", "d"):
        state.put("cell", ".".join(map(str, (cell["sentence"], *places))))


# ---------------------------------------------------------------- the proof
def proof(scene: Scene) -> list[blocks.Number]:
    outcome, lang = scene.outcome, current()
    before, after = outcome.alike
    change = float(outcome.changes.max())
    _side, layer, head = np.unravel_index(int(outcome.changes.argmax()), outcome.changes.shape)
    blind = _must_not_change(scene)
    numbers = [
        blocks.Number(
            f"{after:.4f}".replace("-", "−"),
            _("{title}: cosine of the two sentence vectors").format(title=CHANGES[scene.operation.change].title(lang)),
            _("intact: {value}").format(value=f"{before:.4f}".replace("-", "−")),
        ),
        blocks.Number(
            blocks.compact(change),
            _("largest change of a weight: layer {layer} · head {head}").format(layer=layer + 1, head=head),
            _("should be 0, to the rounding of float32") if blind else _("at most 1"),
            change <= TOLERANCE if blind else None,
        ),
    ]
    if outcome.loss:
        old, new = outcome.loss
        numbers.append(
            blocks.Number(
                f"{new:.3f}",
                _("{title}: loss of the next token, both sentences, nats a token").format(
                    title=CHANGES[scene.operation.change].title(lang)
                ),
                _("intact: {value}").format(value=f"{old:.3f}"),
            )
        )
    else:
        numbers.append(
            blocks.Number(
                f"{min(surgery.cosine(o.pooled, n.pooled) for o, n in zip(outcome.before, outcome.after, strict=True)):.4f}",
                _("cosine of a sentence vector with itself, before and after: the smaller one (1: nothing changed)"),
            )
        )
    return numbers


def _must_not_change(scene: Scene) -> bool:
    """A shift is nothing to a model that knows distances only."""
    return (
        scene.operation.change == "shift"
        and surgery.kind_of(scene.model) != "absolute"
        and scene.operation.amount + max(map(len, scene.tokens)) <= LONGEST_TOLD
    )
