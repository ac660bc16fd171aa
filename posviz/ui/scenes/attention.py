"""Attention: every head of A, of B, and their difference with the words matched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import compare
from posviz.models.twins import corpus, store
from posviz.models.twins.model import MAX_LEN
from posviz.text import visible
from posviz.types import AttentionTrace, Refusal, Text
from posviz.ui import blocks, cached, controls, save, shell, state
from posviz.ui.canvas import heads as canvas
from posviz.ui.lang import _, labels
from posviz.ui.scenes.twin_heads import ROLE_NAMES

KEY = "attention_canvas"
PART_CELLS = 1_000_000  # numbers of score parts that travel; beyond, only weights do


@dataclass(frozen=True, eq=False)
class Scene:
    """Both traces, the matched words, and the difference of the weights between them.

    twin, layer: the trained model and which of its layers; None and 0 for the untrained layer.
    """

    a: AttentionTrace
    b: AttentionTrace
    pairs: tuple[tuple[int, int], ...]
    difference: np.ndarray
    twin: store.Trained | None = None
    layer: int = 0

    @property
    def tolerance(self) -> float:
        """Rounding of a softmax and of a sum of scores, in what the layer was computed in."""
        return 1e-4 if self.a.weights.dtype == np.float32 else 1e-10


def _twin_wanted() -> bool:
    """Whether heads of a trained twin are shown: what somebody chose, else where there is one that can read both."""
    model = state.raw("model")
    return model == "twin" or (model == "" and _twin_suits())


def _twin_suits() -> bool:
    if state.raw("encoding") not in store.available() or state.raw("unit") != "character":
        return False
    known = corpus.index()
    return all(len(s) < MAX_LEN and any(c in known for c in s) for s in (state.raw("a"), state.raw("b")))


def claim() -> str:
    """One sentence under the title, true of the chosen model and mask."""
    if _twin_wanted():
        return _("A small model trained on classical Chinese: its heads have learned where to look.")
    if state.raw("mask") == "causal":
        return _("A − B with the words matched: under a causal mask it shows the order even without position.")
    return _("Same weights, too. A − B has the words matched: without position it is all zero.")


def build(setting: state.Setting) -> Scene:
    state.check()
    if _twin_wanted():
        return _twin_scene(setting)
    layer = {
        "seed": setting.seed,
        "mask": setting.mask,
        "max_len": setting.max_len,
        "precision": setting.precision,
    }
    a, b = (cached.trace(setting.tokens(side), setting.spec, setting.dims, **layer) for side in "ab")
    pairs = compare.match(a.tokens, b.tokens)
    return Scene(a, b, pairs, compare.weights(a, b, pairs))


def _twin_scene(setting: state.Setting) -> Scene:
    for side in "ab":
        setting.tokens(side)  # an empty sentence is refused in the same words as everywhere,
    _ = setting.spec, setting.dims  # and so are sizes that cannot be, though the twin has its own
    twin = store.load(state.get("encoding"))
    layer = state.get("layer")
    if layer > twin.n_layers:
        raise Refusal(
            Text(
                "`layer` must be from 1 to the twin's {n} layers, got {got}",
                "`layer` 必须在 1 到孪生模型的 {n} 层之间，现在是 {got}",
            ),
            field="layer",
            n=twin.n_layers,
            got=layer,
        )
    a, b = (cached.twin_trace(twin.name, state.raw(side)).layers[layer - 1] for side in "ab")
    pairs = compare.match(a.tokens, b.tokens)
    return Scene(a, b, pairs, compare.weights(a, b, pairs), twin, layer)


def encoding_bar() -> None:
    """The encodings side by side, so that a click changes the cells in place; the twins have trained ones."""
    twin, trained = _twin_wanted(), store.available()
    if twin or _twin_suits():
        names = {"twin": _("trained twin"), "untrained": _("untrained layer")}
        controls.pick("model", _("model"), names, shown="twin" if twin else "untrained", collapsed=True)
    if twin and trained:
        layers = range(1, store.load(trained[0]).n_layers + 1)
        controls.pick(
            "layer", _("layer"), {n: _("layer {n}").format(n=n) if n == 1 else str(n) for n in layers}, collapsed=True
        )
    names = controls.encoding_names(trained) if twin and trained else controls.basic_names()
    controls.pick("encoding", _("position encoding"), names, at="_page", collapsed=True)
    if not twin:
        controls.pick("mask", _("mask"), controls.mask_names(), at="_page", collapsed=True)


def badge(setting: state.Setting, scene: Scene) -> str:
    return scene.twin.badge(setting.lang) if scene.twin else shell.untrained(setting)


def notes(scene: Scene) -> list[str]:
    """What the twin does not know, what does not apply to it, and what its heads were measured to do."""
    if scene.twin is None:
        return []
    found = []
    unknown = scene.twin.unknown(state.raw("a") + state.raw("b"))
    if unknown:
        found.append(
            _(
                "The twins learned {n} characters; these are not among them and all look alike to them: {unknown}"
            ).format(n=f"{scene.twin.card['data']['vocabulary']:,}", unknown=" ".join(map(visible, unknown[:20])))
        )
    found += _roles(scene)
    config = scene.twin.card["config"]
    found.append(
        _(
            "A twin is as it was trained: d_model {d}, {h} heads, causal, one token a character behind a start ▸. The sidebar's sizes are the untrained layer's."
        ).format(d=config["d_model"], h=config["n_heads"])
    )
    return found


def _roles(scene: Scene) -> list[str]:
    """The heads of this layer with a role, on held-out quatrains: a share far above chance."""
    measured = store.results().get("twins", {}).get(scene.twin.name, {}).get("heads", [])
    said = []
    for head in measured:
        if head["layer"] != scene.layer - 1:
            continue
        role = max(ROLE_NAMES, key=lambda name: head[name]["share"] - head[name]["chance"])
        share, chance, error = (head[role][key] for key in ("share", "chance", "error"))
        if share - chance > 0.2:
            said.append(
                _("head {h}: {share} → {role} (chance {chance}, ± {error})").format(
                    h=head["head"],
                    share=f"{100 * share:.0f} %",
                    role=_(ROLE_NAMES[role]),
                    chance=f"{100 * chance:.0f} %",
                    error=f"{200 * error:.1f} %",
                )
            )
    return [_("On held-out quatrains, {list}.").format(list=_("; ").join(said))] if said else []


def _parts(trace: AttentionTrace) -> dict[str, np.ndarray] | None:
    total = sum(part.size for part in trace.parts.values())
    return {**trace.parts, "scores": trace.scores} if total <= PART_CELLS else None


def _bias_by_distance(trace: AttentionTrace) -> tuple[np.ndarray, np.ndarray] | None:
    """The bias along the first row and column: every distance once, where only the distance counts."""
    traits = trace.spec.capabilities
    if trace.spec.kind != "bias" or traits.content or not traits.relative:
        return None
    length = len(trace.tokens)
    after, before = trace.bias[:, 0, :], trace.bias[:, 1:, 0]
    distances = np.concatenate([np.arange(length), -np.arange(1, length)])
    keep = distances <= 0 if trace.mask == "causal" else slice(None)
    return distances[keep], np.concatenate([after, before], axis=1)[:, keep]


def scale_text(trace: AttentionTrace) -> str:
    """What a score is divided by, as the pictures say it."""
    return (
        "1"
        if trace.scale == 1
        else f"√{trace.dims.d_head}"
        if np.isclose(trace.scale, trace.dims.d_head**-0.5)
        else f"{1 / trace.scale:.4g}"
    )


def bundle(scene: Scene) -> bytes:
    i = [pair[0] for pair in scene.pairs]
    return canvas.bundle(
        tokens_a=[visible(piece) for piece in scene.a.tokens.pieces],
        tokens_b=[visible(piece) for piece in scene.b.tokens.pieces],
        diff_tokens=[visible(scene.a.tokens.pieces[k]) for k in i],
        weights_a=scene.a.weights,
        weights_b=scene.b.weights,
        difference=scene.difference,
        pairs=scene.pairs,
        allowed_a=scene.a.allowed,
        allowed_b=scene.b.allowed,
        allowed_d=_allowed_both(scene),
        parts_a=_parts(scene.a),
        parts_b=_parts(scene.b),
        scale=scale_text(scene.a),
        bias_by_distance=_bias_by_distance(max(scene.a, scene.b, key=lambda t: len(t.tokens))),
        selected=_selected(scene),
        labels=labels(canvas.LABELS),
        alt=_("Attention weights of {n} heads for both sentences and their difference").format(n=scene.a.dims.n_heads),
        file="posviz-attention",
    )


def _selected(scene: Scene) -> canvas.Cell | None:
    """The chosen cell, else the one of the first heads that the other order changes most: a story at once."""
    asked = state.get("cell")
    if asked:
        side, h, i, j = asked
        length = {"a": len(scene.a.tokens), "b": len(scene.b.tokens), "d": len(scene.pairs)}[side]
        if h < scene.a.dims.n_heads and max(i, j) < length:
            return {"sentence": side, "head": h, "row": i, "col": j}
    if not scene.difference.size:
        return None
    first = np.abs(scene.difference[:3])
    h, i, j = np.unravel_index(int(first.argmax()), first.shape)
    (row, row_b), (col, col_b) = scene.pairs[i], scene.pairs[j]
    if scene.a.allowed[row, col]:
        return {"sentence": "a", "head": int(h), "row": row, "col": col}
    return {
        "sentence": "b",
        "head": int(h),
        "row": row_b,
        "col": col_b,
    }  # A may not look there: B's weight is the story


def _allowed_both(scene: Scene) -> np.ndarray:
    """(M, M): a difference is masked where neither sentence may look."""
    i, j = np.array(scene.pairs, dtype=int).reshape(-1, 2).T
    return scene.a.allowed[i[:, None], i] | scene.b.allowed[j[:, None], j]


def show(scene: Scene) -> None:
    canvas.show(bundle(scene), key=KEY, on_cell=_pinned)


def _pinned() -> None:
    cell = st.session_state[KEY].cell
    places = [state.whole(cell.get(name)) for name in ("head", "row", "col")] if isinstance(cell, Mapping) else []
    if cell is None:
        state.put("cell", "")
    elif None not in places and cell.get("sentence") in ("a", "b", "d"):
        state.put("cell", ".".join(map(str, (cell["sentence"], *places))))


def proof(scene: Scene) -> list[blocks.Number]:
    sums = max(float(np.abs(t.weights.sum(-1) - 1).max()) for t in (scene.a, scene.b))
    parts = max(float(np.abs(sum(t.parts.values()) - t.scores).max()) for t in (scene.a, scene.b))
    largest = float(np.abs(scene.difference).max()) if scene.difference.size else float("nan")
    plain = (
        scene.a.spec.kind == "none"
        and scene.a.mask == "none"
        and len(scene.pairs) == len(scene.a.tokens) == len(scene.b.tokens)
    )
    tolerance = scene.tolerance
    return [
        blocks.Number(
            blocks.compact(largest),
            _("largest difference of a weight between A and B, words matched"),
            _("should be 0") if plain else _("at most 1"),
            largest < tolerance if plain else None,
        ),
        blocks.Number(
            blocks.compact(sums),
            _("each row of weights adds up to 1: largest error"),
            _("should be 0"),
            sums < tolerance,
        ),
        blocks.Number(
            blocks.compact(parts),
            _("the parts of a score add up to it: largest error"),
            _("should be 0"),
            parts < tolerance,
        ),
    ]


def _cell(scene: Scene) -> tuple[AttentionTrace, int, int, int]:
    """The chosen cell as (trace, head, query, key)."""
    cell = _selected(scene) or {"sentence": "a", "head": 0, "row": 0, "col": 0}
    i, j = cell["row"], cell["col"]
    if cell["sentence"] == "d":
        i, j = scene.pairs[i][0], scene.pairs[j][0]
    return scene.b if cell["sentence"] == "b" else scene.a, cell["head"], i, j


def formula(scene: Scene) -> None:
    trace, h, i, j = _cell(scene)
    side = "B" if trace is scene.b and trace is not scene.a else "A"
    product = float(trace.q_rotated[h, i] @ trace.k_rotated[h, j])
    score, weight = float(trace.scores[h, i, j]), float(trace.weights[h, i, j])
    st.latex(
        r"\mathrm{head}_h = \mathrm{softmax}\!\left(\frac{Q_h K_h^\top}{\sqrt{d}} + b\right)V_h,\qquad \mathrm{MultiHead} = [\mathrm{head}_0;\dots;\mathrm{head}_{H-1}]\,W_O"
    )
    st.latex(
        rf"{side},\ h={h}:\quad s_{{{i},{j}}} = {product:.5f} \cdot {trace.scale:.4g} + ({float(trace.bias[h, i, j]):.5f}) = {score:.5f}"
    )
    if not trace.allowed[i, j]:
        blocks.note(_("This key is masked: its weight is 0."))
        return
    row = trace.scores[h, i][trace.allowed[i]]
    total = float(np.exp(row - row.max()).sum())
    st.latex(
        rf"w_{{{i},{j}}} = \frac{{e^{{{score:.5f}}}}}{{\sum_n e^{{s_{{{i},n}}}}}} = \frac{{{np.exp(score - row.max()):.5f}}}{{{total:.5f}}} = \mathbf{{{weight:.6f}}}"
    )


def code(setting: state.Setting, scene: Scene) -> str:
    dims = setting.dims
    if scene.twin:
        made = f"""import torch
from posviz.models.twins import corpus, store
from posviz.models.twins.model import MAX_LEN

twin = store.load({scene.twin.name!r})
trace = twin.trace(twin.tokenize({state.raw("a")!r})).layers[{scene.layer - 1}]
"""
    else:
        made = f"""import torch
from posviz import Dims, attention, encodings, text

spec = {setting.spec.call()}
trace = attention.attend(
    text.tokenize({state.raw("a")!r}, {state.get("unit")!r}), spec, Dims(d_model={dims.d_model}, n_heads={dims.n_heads}),
    seed={setting.seed}, mask={setting.mask!r}, max_len={setting.max_len}, dtype=torch.{setting.precision},
)
"""
    return (
        made
        + """# the same by hand, from queries and keys
q, k = torch.tensor(trace.q_rotated), torch.tensor(trace.k_rotated)  # (n_heads, length, d_head)
scores = q @ k.mT * trace.scale + torch.tensor(trace.bias)           # (n_heads, length, length)
scores = scores.masked_fill(~torch.tensor(trace.allowed), -torch.inf)
values = scores.softmax(-1)
print((values - torch.tensor(trace.weights)).abs().max())
"""
    )


def downloads(setting: state.Setting, scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        found = {"difference": scene.difference, "pairs": np.array(scene.pairs, dtype=np.int32).reshape(-1, 2)}
        for side, t in (("a", scene.a), ("b", scene.b)):
            found |= {f"{side}_{name}": getattr(t, name) for name in ("weights", "scores", "q", "k", "v", "output")}
            found |= {f"{side}_part_{name}": part for name, part in t.parts.items()}
        return found

    def table() -> Iterator[list[object]]:
        yield ["sentence", "head", "query", "key", "score", "weight"]
        for side, t in (("A", scene.a), ("B", scene.b)):
            for (h, i, j), weight in np.ndenumerate(t.weights):
                yield [side, h, i, j, float(t.scores[h, i, j]), float(weight)]

    save.row(
        "attention",
        component="heads",
        data=bundle(scene),
        title=_("Same words, other order: what does each head look at?"),
        caption=f"{badge(setting, scene)}" if scene.twin else setting.parameters,
        arrays=arrays,
        table=table,
        count=scene.a.weights.size + scene.b.weights.size,
    )
