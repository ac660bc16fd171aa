"""Order: both sentences through one layer, without position and with the chosen encoding."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import streamlit as st

from posviz import compare, encodings
from posviz.compare import Difference
from posviz.models.twins import corpus, store
from posviz.models.twins.model import MAX_LEN
from posviz.text import visible
from posviz.types import AttentionTrace, Refusal, Tokens
from posviz.ui import blocks, cached, save, state
from posviz.ui.canvas import order as canvas
from posviz.ui.lang import _, labels

KEY = "order_canvas"
BAR_TOKENS = 128  # longer sentences are computed for the chosen encoding only: seven layers would take seconds
FLOOR = {"float32": 1e-9, "float64": 1e-18}


@dataclass(frozen=True, eq=False)
class Scene:
    """Traces without position and with the encoding, their differences, and what can be said of them."""

    a: Tokens
    b: Tokens
    pairs: tuple[tuple[int, int], ...]
    traces: dict[str, tuple[AttentionTrace, AttentionTrace]]  # "none" and "chosen"
    without: Difference
    chosen: Difference
    bars: dict[str, float | None]
    name: str
    noise: float
    same_words: bool
    data: bytes


def claim() -> str:
    """One sentence under the title, true under the chosen mask."""
    if state.raw("mask") == "causal":
        return _("A causal mask lets a word see only what came before it: that alone already tells the order.")
    return _(
        "Self-attention only moves words around: the same word gets the same vector, unless positions are encoded."
    )


def build(setting: state.Setting) -> Scene:
    state.check()
    a, b = setting.tokens("a"), setting.tokens("b")
    layer = {
        "seed": setting.seed,
        "mask": setting.mask,
        "max_len": setting.max_len,
        "precision": setting.precision,
    }
    pairs = compare.match(a, b)
    traces, differences = {}, {}
    for name, spec in (("none", encodings.make("none")), ("chosen", setting.spec)):
        traces[name] = tuple(cached.trace(side, spec, setting.dims, **layer) for side in (a, b))
        differences[name] = compare.outputs(*traces[name], pairs)
    bars = {name: _bar(setting, name, a, b, layer) for name in (*encodings.BASICS, setting.spec.name)}
    bars |= {"none": _finite(differences["none"].tokens), setting.spec.name: _finite(differences["chosen"].tokens)}
    # Rounding of a layer: a few hundred additions of numbers of this size.
    largest = max(float(np.abs(t.residual).max()) for t in traces["none"])
    noise = 256 * float(np.finfo(setting.precision).eps) * largest
    name = setting.spec.title(setting.lang)
    scene = Scene(
        a,
        b,
        pairs,
        traces,
        differences["none"],
        differences["chosen"],
        bars,
        name,
        noise,
        Counter(a.ids) == Counter(b.ids),
        b"",
    )
    return Scene(**{**vars(scene), "data": _bundle(setting, scene)})


def _bar(setting: state.Setting, name: str, a: Tokens, b: Tokens, layer: dict) -> float | None:
    """An encoding's matched difference; None where the sizes do not suit it, or the sentences are long."""
    if max(len(a), len(b)) > BAR_TOKENS or name in ("none", setting.spec.name):
        return None
    try:
        return _finite(cached.difference(a, b, setting.other(name), setting.dims, **layer).tokens)
    except Refusal:
        return None


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value


def _bundle(setting: state.Setting, scene: Scene) -> bytes:
    titles = {"none": _("No position"), "chosen": _("Position encoding: {name}").format(name=scene.name)}
    panels = [
        {
            "title": titles[name],
            "a": scene.traces[name][0].residual,
            "b": scene.traces[name][1].residual,
            "delta": difference.per_token,
        }
        for name, difference in (("none", scene.without), ("chosen", scene.chosen))
    ]
    return canvas.bundle(
        tokens_a=[visible(piece) for piece in scene.a.pieces],
        tokens_b=[visible(piece) for piece in scene.b.pieces],
        panels=panels,
        matches=scene.pairs,
        # One scale for all; the few cells beyond the 98th percentile are drawn as dark as it.
        vmax=float(np.quantile(np.abs(np.concatenate([p[s].ravel() for p in panels for s in "ab"])), 0.98)),
        bars=[
            {
                "label": encodings.ENCODINGS[name].title(setting.lang),
                "value": value,
                "selected": name == setting.spec.name,
                "name": name,
            }
            for name, value in scene.bars.items()
        ],
        floor=FLOOR[setting.precision],
        noise=scene.noise,
        labels=labels(canvas.LABELS),
        alt=_("Output vectors of both sentences, without position and with {name}").format(name=scene.name),
        file="posviz-order",
    )


def show(scene: Scene) -> None:
    def choose() -> None:
        state.put("encoding", st.session_state[KEY].encoding)

    canvas.show(scene.data, key=KEY, on_encoding=choose)


def proof(setting: state.Setting, scene: Scene) -> list[blocks.Number]:
    claimed = scene.same_words and setting.mask == "none"
    zero = _("should be 0 ({precision})").format(precision=setting.precision) if claimed else ""
    mirrored = scene.a.ids == scene.b.ids[::-1]
    blind = setting.spec.mirror_blind(len(scene.a)) and mirrored and claimed
    same = scene.a.ids == scene.b.ids
    expected = "" if not claimed else zero if blind or same else _("should be above 0")
    small = scene.chosen.pooled < scene.noise
    return [
        blocks.Number(
            blocks.compact(scene.without.tokens),
            _("no position: largest difference of outputs after matching words"),
            zero,
            scene.without.tokens < scene.noise if claimed else None,
        ),
        blocks.Number(
            blocks.compact(scene.without.pooled),
            _("no position: difference of the two sentence vectors (mean over words)"),
            zero,
            scene.without.pooled < scene.noise if claimed else None,
        ),
        blocks.Number(
            blocks.compact(scene.chosen.pooled),
            _("{name}: difference of the two sentence vectors").format(name=scene.name),
            expected,
            (small if blind or same else not small) if claimed else None,
        ),
    ]


def notes(setting: state.Setting, scene: Scene) -> list[str]:
    """What is special about these two sentences, if anything."""
    found = []
    if max(len(scene.a), len(scene.b)) > BAR_TOKENS:
        found.append(_("Sentences of more than {n} tokens: only the chosen encoding has a bar.").format(n=BAR_TOKENS))
    if scene.a.ids == scene.b.ids:
        found.append(_("A and B are the same sentence: nothing can differ."))
    elif not scene.pairs:
        found.append(
            _("The two sentences share no word, so there is nothing to match; only the sentence vectors are compared.")
        )
    elif not scene.same_words:
        found.append(
            _(
                "Unmatched: {a} of A's and {b} of B's words. The sentences say different things, so the outputs differ even without position."
            ).format(a=len(scene.a) - len(scene.pairs), b=len(scene.b) - len(scene.pairs))
        )
    elif setting.mask == "none" and scene.a.ids == scene.b.ids[::-1]:
        # encodings that add something and yet make no difference here: their bars need a word
        shown = [setting.other(name) for name, value in scene.bars.items() if value is not None]
        blind = [spec.title(setting.lang) for spec in shown if spec.kind != "none" and spec.mirror_blind(len(scene.a))]
        found.append(
            _(
                "{name} sees how far, not which way. B is A read backwards, every distance is the same, so the difference is 0."
            ).format(name=_(", ").join(blind))
        )
    if len(set(scene.a.ids)) < len(scene.a) and scene.pairs:
        found.append(_("A repeated word is matched with its nearest occurrence."))
    return found


def twins(setting: state.Setting) -> None:
    """How probable each trained twin finds the two sentences; nothing where none of it was ever learned."""
    names, sentences = store.available(), (state.raw("a"), state.raw("b"))
    longest = max(map(len, sentences))
    known = corpus.index()
    if not names or longest >= MAX_LEN or not any(c in known for c in "".join(sentences)):
        return
    rows = []
    for name in names:
        a, b = (cached.twin_log_probability(name, sentence) for sentence in sentences)
        likelier = "A" if a >= b else "B"
        times = abs(a - b)
        said = _("equally likely") if times < 1e-4 else f"{likelier} × {blocks.compact(math.exp(min(times, 700)))}"
        rows.append([encodings.ENCODINGS[name].title(setting.lang), _power(a), _power(b), said])
    blocks.table(
        ["", _("probability of A"), _("probability of B"), _("likelier")],
        rows,
        _("Which of the two would a model write that has been trained?"),
        _(
            "Twins: the same small model trained on the same classical poems, with one encoding each; all read from left to right. See “{page}”."
        ).format(page=_("What position teaches")),
    )


def _power(log: float) -> str:
    """e^log as 1.2×10⁻⁷."""
    exponent = math.floor(log / math.log(10))
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{10 ** (log / math.log(10) - exponent):.1f}×10{digits}"


def formula(scene: Scene) -> None:
    st.latex(
        r"y_i = h_i + \mathrm{MultiHead}(h)_i,\qquad h_i = x_i + PE_i,\qquad \mathrm{MultiHead}(Px) = P\,\mathrm{MultiHead}(x)"
    )
    lines = []
    for name, difference in ((_("no position"), scene.without), (_("with position"), scene.chosen)):
        trace_a, trace_b = scene.traces["none" if difference is scene.without else "chosen"]
        for (i, j), value in list(zip(scene.pairs, difference.per_token, strict=True))[:3]:
            gap = np.abs(trace_a.residual[i] - trace_b.residual[j])
            c = int(gap.argmax())
            lines.append(
                rf"\text{{{name}}}:\ \Delta_{{{i},{j}}} = \max_c |y^A_{{{i},c}} - y^B_{{{j},c}}| = "
                rf"|{trace_a.residual[i, c]:.5f} - ({trace_b.residual[j, c]:.5f})| = {_tex(value)}\quad (c = {c})"
            )
    for line in lines:
        st.latex(line)


def _tex(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if value and not 1e-3 < value < 1e4 else f"{value:.4f}"


def code(setting: state.Setting) -> str:
    dims = setting.dims
    return f"""import torch
from posviz import Dims, attention, compare, encodings, text

dims = Dims(d_model={dims.d_model}, n_heads={dims.n_heads})
a, b = (text.tokenize(s, {state.get("unit")!r}) for s in ({state.raw("a")!r}, {state.raw("b")!r}))
values = {{}}
for spec in (encodings.make("none"), {setting.spec.call()}):
    trace_a, trace_b = (
        attention.attend(s, spec, dims, seed={setting.seed}, mask={setting.mask!r}, max_len={setting.max_len}, dtype=torch.{setting.precision})
        for s in (a, b)
    )
    values[spec.name] = compare.outputs(trace_a, trace_b, compare.match(a, b))
    print(spec.name, values[spec.name])
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        return {
            f"{name}_{side}": trace.residual
            for name, both in scene.traces.items()
            for side, trace in zip("ab", both, strict=True)
        } | {"pairs": np.array(scene.pairs, dtype=np.int32).reshape(-1, 2)}

    def table() -> list[list[object]]:
        head = ["encoding", "sentence", "position", "token", *range(setting.dims.d_model)]
        lines: list[list[object]] = [head]
        for both in scene.traces.values():
            for side, trace in zip("AB", both, strict=True):
                # the position stands before the token, so that no spreadsheet takes it for a formula
                lines += [
                    [trace.spec.name, side, i, f"{i}·{visible(piece)}", *trace.residual[i].tolist()]
                    for i, piece in enumerate(trace.tokens.pieces)
                ]
        return lines

    save.row(
        "order",
        component="order",
        data=scene.data,
        title=_("Without positions, can a model tell who loves whom?"),
        caption=setting.parameters,
        arrays=arrays,
        table=table,
        count=4 * (len(scene.a) + len(scene.b)) * setting.dims.d_model,
    )
