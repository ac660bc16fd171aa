"""The Studio's pictures: each view as (component, bundle), how it is mounted, and what it saves."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import streamlit as st

from posviz import compare, survey
from posviz.types import AttentionTrace
from posviz.ui import controls, save, state
from posviz.ui.canvas import grid, heads, links
from posviz.ui.lang import _, labels
from posviz.ui.scenes import studio_steps
from posviz.ui.scenes.attention import PART_CELLS, scale_text
from posviz.ui.scenes.studio import GATHER_NAMES, Scene, made, see_code
from posviz.ui.scenes.studio_picture import KEY, Picture, chosen_cell, chosen_traces, event, matched, texts


def picture(scene: Scene) -> Picture:
    return _VIEWS[scene.view](scene)


def _axes(scene: Scene) -> dict[str, str]:
    """What the legend says of the axes, where queries and keys are of different sentences."""
    return {"legend_axes": _("down: query (decoder), across: key (encoder)")} if scene.part == "cross" else {}


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
            "a": texts(found.tokens_a),
            "b": texts(found.tokens_b),
            "d": matched(found.tokens_a, found.pairs),
        },
        keys={
            "a": texts(scene.keys("a")),
            "b": texts(scene.keys("b")),
            "d": matched(scene.keys("a"), scene.key_pairs),
        },
        thumbs=found.thumbs,
        allowed=found.allowed,
        scores=found.scores,
        uniform=found.uniform,
        look=look,
        chosen=scene.place,
        labels={**labels(grid.LABELS), **_axes(scene)},
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
    look = event(f"{KEY}_grid", "look")
    if not isinstance(look, Mapping):
        return
    if look.get("side") in grid.SIDES:
        state.put("sside", look["side"])
    if look.get("measure") in ("", *survey.SCORES):
        state.put("smeasure", look["measure"])
    for name in ("sorted", "own"):
        state.put(f"s{name}", bool(look.get(name)))


def _opened() -> None:
    place = event(f"{KEY}_grid", "open")
    if not isinstance(place, Mapping):
        return
    layer, head = (state.whole(place.get(name)) for name in ("layer", "head"))
    if layer is not None and head is not None:
        state.put("slayer", layer + 1)
        state.put("shead", head)
        state.put("sview", "head")


# ---------------------------------------------------------------- one head
def _one_head(scene: Scene) -> tuple[survey.Seen, survey.Seen]:
    return tuple(scene.see(trace, scene.place[1]) for trace in chosen_traces(scene))


def _head(scene: Scene) -> Picture:
    a, b = _one_head(scene)
    parts = [_parts(scene, trace) for trace in chosen_traces(scene)]
    return _matrices(scene, a, b, scene.title, "head", parts, _head_code(scene))


def _parts(scene: Scene, trace: AttentionTrace) -> dict[str, np.ndarray] | None:
    """The parts of the head's scores; without the special tokens they are another matter."""
    head = scene.place[1]
    found = trace.head_parts(head)
    if scene.special != "shown" or (len(found) + 1) * trace.allowed.size > PART_CELLS:
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
    pairs = scene.pairs, scene.key_pairs
    cross = not a.square
    data = heads.bundle(
        tokens_a=texts(a.tokens),
        tokens_b=texts(b.tokens),
        diff_tokens=matched(a.tokens, scene.pairs),
        keys_a=texts(a.keys) if cross else None,
        keys_b=texts(b.keys) if cross else None,
        diff_keys=matched(a.keys, scene.key_pairs) if cross else None,
        weights_a=a.weights,
        weights_b=b.weights,
        difference=compare.weights(a, b, *pairs),
        pairs=scene.pairs,
        key_pairs=scene.key_pairs if cross else None,
        allowed_a=a.allowed,
        allowed_b=b.allowed,
        allowed_d=compare.matched(a.allowed, *pairs, 0) | compare.matched(b.allowed, *pairs, 1),
        parts_a=parts[0] if parts else None,
        parts_b=parts[1] if parts else None,
        scale=scale_text(chosen_traces(scene)[0]),
        head_labels=[title],
        opened=True,
        selected=_pinned(scene),
        labels={
            **labels(heads.LABELS),
            **_axes(scene),
            "hint": _("Point at a cell to see its weight; click to pin it."),
        },
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
    side, row, col = chosen_cell(scene)
    trace = scene.traces(side)[0]
    shown = len(scene.tokens(side)), len(scene.keys(side))
    return (
        None if shown != (len(trace.tokens), len(trace.keys)) else {"sentence": side, "head": 0, "row": row, "col": col}
    )


def _mount_heads(data: bytes, key: str) -> None:
    heads.show(data, key=f"{KEY}_{key}", on_cell=lambda: _celled(f"{KEY}_{key}"))


def _celled(key: str) -> None:
    """A cell pinned in the matrices is the one that "one weight" takes apart."""
    cell = event(key, "cell")
    if not isinstance(cell, Mapping) or cell.get("sentence") not in ("a", "b"):
        return
    row, col = (state.whole(cell.get(name)) for name in ("row", "col"))
    if row is not None and col is not None:
        state.put("scell", f"{cell['sentence']}.{row}.{col}")


# ---------------------------------------------------------------- lines
def _lines(scene: Scene) -> Picture:
    a, b = _one_head(scene)
    data = links.bundle(
        tokens_a=texts(a.tokens),
        weights_a=a.weights[0],
        allowed_a=a.allowed,
        tokens_b=texts(b.tokens),
        weights_b=b.weights[0],
        allowed_b=b.allowed,
        key_tokens_a=None if a.square else texts(a.keys),
        key_tokens_b=None if b.square else texts(b.keys),
        pairs=scene.pairs,
        key_pairs=None if a.square else scene.key_pairs,
        title=scene.title,
        selected=_within(state.get("slines"), a, b),
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


def _within(chosen: Mapping[str, list[int]], a: survey.Seen, b: survey.Seen) -> dict[str, list[int]]:
    """The chosen tokens that the sentences still have."""
    lengths = {"a": len(a.tokens), "b": len(b.tokens), "ak": len(a.keys), "bk": len(b.keys)}
    return {LINE_GROUPS[group]: [i for i in places if i < lengths[group]] for group, places in chosen.items()}


def _lined() -> None:
    look = event(f"{KEY}_lines", "look")
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
        how = state.get("sgather")
        offered = [k for k in GATHER_NAMES if k != "rollout" or scene.part != "cross" or k == how]  # what a link says
        controls.pick("sgather", _("put together by"), {k: _(GATHER_NAMES[k]) for k in offered}, collapsed=True)
        with st.popover(_("which layers and heads")):
            controls.several(
                "slayers", _("layers (none chosen: all)"), {str(n + 1): str(n + 1) for n in range(scene.n_layers)}
            )
            controls.several("sheads", _("heads (none chosen: all)"), {str(h): str(h) for h in range(scene.n_heads)})


_VIEWS: dict[str, Callable[[Scene], Picture]] = {
    "grid": _grid,
    "head": _head,
    "lines": _lines,
    "weight": studio_steps.picture_of("cell"),
    "steps": studio_steps.picture_of("steps"),
    "all": _all,
}


def downloads(scene: Scene, shown: Picture, badge: str) -> None:
    save.row(
        f"studio-{scene.view}",
        component=shown.component,
        data=shown.data,
        title=_("What does every head of a trained model look at?"),
        caption=badge,
        arrays=shown.arrays,
        table=shown.table,
        count=0 if scene.view == "grid" else sum(len(scene.tokens(side)) * len(scene.keys(side)) for side in "ab"),
    )
