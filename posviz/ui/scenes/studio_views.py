"""The Studio's pictures: each view as (component, bundle), how it is mounted, and what it saves."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import compare, survey
from posviz.models.untrained import Untrained
from posviz.text import visible
from posviz.types import AttentionTrace, Tokens
from posviz.ui import controls, save, state
from posviz.ui.canvas import grid, heads, links, steps
from posviz.ui.lang import _, labels
from posviz.ui.scenes.attention import PART_CELLS, scale_text
from posviz.ui.scenes.studio import GATHER_NAMES, Scene, made, see_code

KEY = "studio_canvas"


@dataclass(frozen=True, eq=False)
class Picture:
    """What a view draws: its component, its data, how to mount it, and its numbers."""

    component: str
    data: bytes
    mount: Callable[[], None]
    arrays: Callable[[], Mapping[str, np.ndarray]]
    table: Callable[[], Iterable[list[object]]]
    code: str


def picture(scene: Scene) -> Picture:
    return _VIEWS[scene.view](scene)


def _texts(tokens: Tokens) -> list[str]:
    return [visible(piece) for piece in tokens.pieces]


def _matched(tokens: Tokens, pairs: Iterable[tuple[int, int]]) -> list[str]:
    return [visible(tokens.pieces[i]) for i, _j in pairs]


def _event(key: str, name: str) -> object:
    """What the canvas has just sent; anything can come from a browser."""
    return getattr(st.session_state.get(key), name, None)


# ---------------------------------------------------------------- all heads
def _grid(scene: Scene) -> Picture:
    found = scene.survey
    look: grid.Look = {
        "side": state.get("sside"),
        "measure": state.get("smeasure") if state.get("smeasure") in found.scores else "",
        "sorted": state.get("ssorted") == "on",
        "own": state.get("sown") == "on",
    }
    data = grid.bundle(
        tokens={
            "a": _texts(found.tokens_a),
            "b": _texts(found.tokens_b),
            "d": _matched(found.tokens_a, found.pairs),
        },
        keys={
            "a": _texts(scene.keys("a")),
            "b": _texts(scene.keys("b")),
            "d": _matched(scene.keys("a"), scene.key_pairs),
        },
        thumbs=found.thumbs,
        allowed=found.allowed,
        scores=found.scores,
        uniform=found.uniform,
        look=look,
        chosen=scene.place,
        labels=labels(grid.LABELS),
        alt=_("Every head of {n} layers as a small picture of its weights").format(n=found.shape[0]),
        file="posviz-heads",
    )

    def arrays() -> Mapping[str, np.ndarray]:
        return {
            **{f"score_{k}": v for k, v in found.scores.items()},
            **{f"picture_{k}": v for k, v in found.thumbs.items()},
        }

    def table() -> Iterable[list[object]]:
        yield ["layer", "head", *found.scores]
        for n, h in np.ndindex(*found.shape):
            yield [n + 1, h, *(float(v[n, h]) for v in found.scores.values())]

    code = f"""
found = survey.survey(*(map({see_code(scene)}, layers) for layers in (layers_a, layers_b)))
values = found.scores["{"previous" if scene.part != "cross" else "change"}"]  # (layers, heads)
print(values.round(3))
"""
    return Picture("grid", data, lambda: _mount_grid(data), arrays, table, made(scene) + code)


def _mount_grid(data: bytes) -> None:
    grid.show(data, key=f"{KEY}_grid", on_look=_looked, on_open=_opened)


def _looked() -> None:
    look = _event(f"{KEY}_grid", "look")
    if not isinstance(look, Mapping):
        return
    if look.get("side") in grid.SIDES:
        state.put("sside", look["side"])
    if look.get("measure") in ("", *survey.SCORES):
        state.put("smeasure", look["measure"])
    for name in ("sorted", "own"):
        state.put(f"s{name}", bool(look.get(name)))


def _opened() -> None:
    place = _event(f"{KEY}_grid", "open")
    if not isinstance(place, Mapping):
        return
    layer, head = (state.whole(place.get(name)) for name in ("layer", "head"))
    if layer is not None and head is not None:
        state.put("slayer", layer + 1)
        state.put("shead", head)
        state.put("sview", "head")


# ---------------------------------------------------------------- one head
def _traces(scene: Scene) -> tuple[AttentionTrace, AttentionTrace]:
    n, _head = scene.place
    return scene.traces("a")[n], scene.traces("b")[n]


def _one_head(scene: Scene) -> tuple[survey.Seen, survey.Seen]:
    return tuple(scene.see(trace, scene.place[1]) for trace in _traces(scene))


def _head(scene: Scene) -> Picture:
    a, b = _one_head(scene)
    parts = [_parts(scene, trace) for trace in _traces(scene)]
    return _matrices(scene, a, b, scene.title, "head", parts, _head_code(scene))


def _parts(scene: Scene, trace: AttentionTrace) -> dict[str, np.ndarray] | None:
    """The parts of the head's scores; without the special tokens they are another matter."""
    head = scene.place[1]
    found = trace.head_parts(head)
    if scene.special != "shown" or (len(found) + 1) * len(trace.tokens) ** 2 > PART_CELLS:
        return None
    return {**{name: part[None] for name, part in found.items()}, "scores": trace.head_scores(head)[None]}


def _head_code(scene: Scene) -> str:
    layer, head = scene.place
    return f"""
see = {see_code(scene)}
a, b = (see(layers[{layer}]) for layers in (layers_a, layers_b))
values = a.weights[{head}]  # (query, key)
print(values.round(3))
"""


def _matrices(
    scene: Scene,
    a: survey.Seen,
    b: survey.Seen,
    title: str,
    key: str,
    parts: list[dict[str, np.ndarray] | None] | None,
    code: str,
) -> Picture:
    """A, B and A - B large, of one head or of many as one."""
    i, j = np.array(scene.pairs, dtype=int).reshape(-1, 2).T
    difference = compare.weights(a, b, scene.pairs)
    data = heads.bundle(
        tokens_a=_texts(a.tokens),
        tokens_b=_texts(b.tokens),
        diff_tokens=_matched(a.tokens, scene.pairs),
        weights_a=a.weights,
        weights_b=b.weights,
        difference=difference,
        pairs=scene.pairs,
        allowed_a=a.allowed,
        allowed_b=b.allowed,
        allowed_d=a.allowed[i[:, None], i] | b.allowed[j[:, None], j],
        parts_a=parts[0] if parts else None,
        parts_b=parts[1] if parts else None,
        scale=scale_text(_traces(scene)[0]),
        head_labels=[title],
        opened=True,
        selected=_pinned(scene),
        labels={**labels(heads.LABELS), "hint": _("Point at a cell to see its weight; click to pin it.")},
        alt=_("{title}: weights in A, in B, and their difference").format(title=title),
        file=f"posviz-{key}",
    )

    arrays, table = _numbers(a, b)
    return Picture("heads", data, lambda: _mount_heads(data, key), arrays, table, made(scene) + code)


def _numbers(a: survey.Seen, b: survey.Seen) -> tuple[Callable, Callable]:
    """What NPZ and CSV hold of one head."""

    def arrays() -> Mapping[str, np.ndarray]:
        return {"a": a.weights[0], "b": b.weights[0]}

    def table() -> Iterable[list[object]]:
        yield ["sentence", "query", "key", "weight"]
        for side, seen in (("A", a), ("B", b)):
            for (q, k), weight in np.ndenumerate(seen.weights[0]):
                yield [side, q, k, float(weight)]

    return arrays, table


def _pinned(scene: Scene) -> heads.Cell | None:
    """The chosen weight, where it is drawn."""
    side, row, col = _cell(scene)
    hidden = len(scene.traces(side)[0].tokens) - len(scene.tokens(side))
    return None if hidden else {"sentence": side, "head": 0, "row": row, "col": col}


def _mount_heads(data: bytes, key: str) -> None:
    heads.show(data, key=f"{KEY}_{key}", on_cell=lambda: _celled(f"{KEY}_{key}"))


def _celled(key: str) -> None:
    """A cell pinned in the matrices is the one that "one weight" takes apart."""
    cell = _event(key, "cell")
    if not isinstance(cell, Mapping) or cell.get("sentence") not in ("a", "b"):
        return
    row, col = (state.whole(cell.get(name)) for name in ("row", "col"))
    if row is not None and col is not None:
        state.put("scell", f"{cell['sentence']}.{row}.{col}")


# ---------------------------------------------------------------- lines
def _lines(scene: Scene) -> Picture:
    a, b = _one_head(scene)
    data = links.bundle(
        tokens_a=_texts(a.tokens),
        weights_a=a.weights[0],
        allowed_a=a.allowed,
        tokens_b=_texts(b.tokens),
        weights_b=b.weights[0],
        allowed_b=b.allowed,
        key_tokens_a=None if a.square else _texts(a.keys),
        key_tokens_b=None if b.square else _texts(b.keys),
        pairs=scene.pairs,
        key_pairs=None if a.square else scene.key_pairs,
        title=scene.title,
        selected=_within(state.get("slines"), len(a.tokens), len(b.tokens)),
        threshold=state.get("sfrom"),
        top_k=state.get("stop"),
        labels=labels(links.LABELS),
        alt=_("{title}: a line for every weight, from query to key").format(title=scene.title),
        file="posviz-lines",
    )

    def mount() -> None:
        links.show(data, key=f"{KEY}_lines", on_look=_lined)

    arrays, table = _numbers(a, b)
    return Picture("links", data, mount, arrays, table, made(scene) + _head_code(scene))


LINE_GROUPS = {"a": "a", "b": "b", "ak": "a_keys", "bk": "b_keys"}


def _within(chosen: Mapping[str, list[int]], length_a: int, length_b: int) -> dict[str, list[int]]:
    """The chosen tokens that the sentences still have."""
    return {
        LINE_GROUPS[group]: [i for i in places if i < (length_a if group[0] == "a" else length_b)]
        for group, places in chosen.items()
    }


def _lined() -> None:
    look = _event(f"{KEY}_lines", "look")
    if not isinstance(look, Mapping):
        return
    threshold = look.get("threshold")
    if isinstance(threshold, int | float) and 0 <= threshold <= links.MAX_THRESHOLD:
        state.put("sfrom", float(threshold))
    if look.get("top_k") in links.TOP_K:
        state.put("stop", look["top_k"])
    chosen = []
    for group, name in LINE_GROUPS.items():
        places = look.get(name)
        chosen += [
            f"{group}{i}" for p in (places if isinstance(places, list) else []) if (i := state.whole(p)) is not None
        ]
    state.put("slines", ".".join(chosen[:64]))


# ---------------------------------------------------------------- one weight, and step by step
def _w_o(scene: Scene, trace: AttentionTrace) -> np.ndarray:
    """(H, e, d)"""
    return scene.model.output_projection() if isinstance(scene.model, Untrained) else trace.w_o


def _cell(scene: Scene) -> tuple[str, int, int]:
    """(side, query, key): the chosen one, else of A the last word and what it looks at most."""
    chosen = state.get("scell")
    if chosen:
        side, i, j = chosen
        trace = scene.traces(side)[0]
        if i < len(trace.tokens) and j < len(trace.keys):
            return side, i, j
    weights = _traces(scene)[0].head_weights(scene.place[1])
    return "a", len(weights) - 1, int(weights[-1].argmax())


def _steps(mode: str) -> Callable[[Scene], Picture]:
    def make(scene: Scene) -> Picture:
        side, row, col = _cell(scene)
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
    cell = _event(key, "cell")
    if isinstance(cell, Mapping):
        row, col = (state.whole(cell.get(name)) for name in ("row", "col"))
        if row is not None and col is not None:
            state.put("scell", f"{side}.{row}.{col}")


def _stepped(key: str) -> None:
    step = state.whole(_event(key, "step"))
    if step is not None and 1 <= step <= 9:
        state.put("sstep", step)


# ---------------------------------------------------------------- heads together
def _all(scene: Scene) -> Picture:
    how, only_layers, only_heads = state.get("sgather"), state.get("slayers"), state.get("sheads")
    layers = [n for n in range(scene.n_layers) if not only_layers or str(n + 1) in only_layers]
    chosen = [h for h in range(scene.n_heads) if not only_heads or str(h) in only_heads]
    options = {"how": how, "only_layers": layers, "only_heads": chosen}
    both = []
    for side in "ab":
        together = survey.aggregate(scene.layers(side), **options)
        seen = scene.see(scene.traces(side)[0], 0)
        allowed = together > 0 if how == "rollout" else seen.allowed
        both.append(survey.Seen(seen.tokens, together[None], allowed, seen.keys))
    title = _("{how} of {heads} heads in {layers} layers").format(
        how=_(GATHER_NAMES[how]), heads=len(chosen), layers=len(layers)
    )
    code = f"""
values = survey.aggregate(
    map({see_code(scene)}, layers_a), how={how!r}, only_layers={layers}, only_heads={chosen}
)  # (query, key)
print(values.round(3))
"""
    return _matrices(scene, *both, title, "together", None, code)


def gather_bar(scene: Scene) -> None:
    """How heads are put together, and which."""
    if scene.view != "all":
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        controls.pick("sgather", _("put together by"), {k: _(v) for k, v in GATHER_NAMES.items()}, collapsed=True)
        with st.popover(_("which layers and heads")):
            controls.several(
                "slayers", _("layers (none chosen: all)"), {str(n + 1): str(n + 1) for n in range(scene.n_layers)}
            )
            controls.several("sheads", _("heads (none chosen: all)"), {str(h): str(h) for h in range(scene.n_heads)})


_VIEWS: dict[str, Callable[[Scene], Picture]] = {
    "grid": _grid,
    "head": _head,
    "lines": _lines,
    "weight": _steps("cell"),
    "steps": _steps("steps"),
    "all": _all,
}


def downloads(scene: Scene, shown: Picture, badge: str) -> None:
    length = max(len(scene.tokens(side)) for side in "ab")
    save.row(
        f"studio-{scene.view}",
        component=shown.component,
        data=shown.data,
        title=_("What does every head of a trained model look at?"),
        caption=badge,
        arrays=shown.arrays,
        table=shown.table,
        count=0 if scene.view == "grid" else 2 * length**2,
    )
