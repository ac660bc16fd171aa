"""The Studio's views "one weight" and "steps": how attention comes about, number by number."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from posviz import survey
from posviz.models.untrained import Untrained
from posviz.types import AttentionTrace
from posviz.ui import state
from posviz.ui.canvas import steps
from posviz.ui.lang import _, labels
from posviz.ui.scenes.attention import scale_text
from posviz.ui.scenes.studio import Scene, made
from posviz.ui.scenes.studio_picture import KEY, Picture, chosen_cell, event


def _w_o(scene: Scene, trace: AttentionTrace) -> np.ndarray:
    """(H, e, d)"""
    return scene.model.output_projection() if isinstance(scene.model, Untrained) else trace.w_o


def picture_of(mode: str) -> Callable[[Scene], Picture]:
    """mode: "cell" for one weight, "steps" for how all of them come about."""

    def make(scene: Scene) -> Picture:
        side, row, col = chosen_cell(scene)
        layer, head = scene.place
        trace = scene.traces(side)[layer]
        w_o = _w_o(scene, trace)
        view = steps.from_trace(trace, w_o.reshape(-1, w_o.shape[-1]), head, b_o=trace.b_o, rotary=_rotary(trace))
        data = steps.bundle(
            view,
            mode=mode,
            row=row,
            col=col,
            step=state.get("sstep"),
            side=side,
            scale_text=scale_text(trace),
            bias_note=_bias_note(trace, layer),
            labels=labels(steps.LABELS),
            alt=_("{title}: how one weight comes about").format(title=scene.title),
            file=f"posviz-{mode}",
        )
        key = f"{KEY}_{mode}"

        def mount() -> None:
            steps.show(data, key=key, on_cell=lambda: _moved(key, side), on_step=lambda: _stepped(key))

        def arrays() -> Mapping[str, np.ndarray]:
            names = ("q", "k", "v", "q_rotated", "k_rotated", "scores", "weights", "head_output", "concat", "output")
            return {name: getattr(view, name) for name in names}

        def table() -> Iterable[list[object]]:
            given = survey.contributions(view.weights[row], view.v, w_o[head])
            yield ["key", "score", "weight", "contribution"]
            for j in range(len(given)):
                yield [trace.keys.labels[j], float(view.scores[row, j]), float(view.weights[row, j]), float(given[j])]

        code = f"""
layer = layers_{side}[{layer}]
q, k = layer.q_rotated[{head}, {row}], layer.k_rotated[{head}]  # after RoPE, where the model has it
scores = k @ q * layer.scale + layer.bias[{head}, {row}]
scores[~layer.allowed[{row}]] = float("-inf")
values = (e := __import__("numpy").exp(scores - scores.max())) / e.sum()
print(values, layer.weights[{head}, {row}])
"""
        return Picture("steps", data, mount, arrays, table, made(scene) + code)

    return make


def _rotary(trace: AttentionTrace) -> steps.Rotary | None:
    spec = trace.spec
    if spec.kind != "rotary":
        return None
    positions = np.arange(len(trace.tokens))
    inv_freq = np.asarray(spec.inv_freq(trace.dims.d_head))
    return steps.Rotary(spec.pairing, positions[:, None] * inv_freq)


def _bias_note(trace: AttentionTrace, layer: int) -> str:
    kind = trace.spec.kind
    if kind == "bias":
        return _("{name} adds its bias here").format(name=trace.spec.title(state.get("lang")))
    if kind == "rotary":
        return _("nothing is added here: the position has turned q and k")
    if kind == "additive" and layer:
        return _("nothing is added here: the position came in with the first layer's input")
    if kind == "additive":
        return _("nothing is added here: the position is part of X")
    return _("nothing is added here: this layer knows no position")


def _moved(key: str, side: str) -> None:
    cell = event(key, "cell")
    if isinstance(cell, Mapping):
        row, col = (state.whole(cell.get(name)) for name in ("row", "col"))
        if row is not None and col is not None:
            state.put("scell", f"{side}.{row}.{col}")


def _stepped(key: str) -> None:
    step = state.whole(event(key, "step"))
    if step is not None and 1 <= step <= 9:
        state.put("sstep", step)
