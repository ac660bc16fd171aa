"""Surgery, below the picture: loss by token, notes, formula, code, downloads."""

from collections.abc import Iterator

import numpy as np
import streamlit as st

from posviz import figures
from posviz.models import surgery
from posviz.models.pretrained import Pretrained
from posviz.models.surgery import CHANGES
from posviz.text import visible
from posviz.ui import save, state
from posviz.ui.lang import _, current
from posviz.ui.scenes.surgery import STAGES, Scene, bundle

ENGLISH = ("dog bites man", "man bites dog")


def losses(setting: state.Setting, scene: Scene) -> None:
    """The loss of every next token, before and after; nothing for a model that does not predict it."""
    outcome = scene.outcome
    if outcome.loss is None:
        return
    sides = dict(zip("AB", range(2), strict=True))
    own = isinstance(scene.model, Pretrained) and scene.model.family.decoder is not None
    pieces = {side: [visible(p) for p in scene.tokens[i].pieces[0 if own else 1 :]] for side, i in sides.items()}
    figure = figures.losses_before_after(
        {side: outcome.losses_before[i] for side, i in sides.items()},
        {side: outcome.losses_after[i] for side, i in sides.items()},
        pieces,
        title=_("How hard is every next token to guess?"),
        parameters=_("{name} · {change}").format(
            name=scene.model.name, change=CHANGES[scene.operation.change].title(setting.lang)
        ),
        dark=st.context.theme.type == "dark",
        lang=setting.lang,
    )
    figure.update_layout(width=None, autosize=True, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)")
    st.plotly_chart(figure, theme=None, key="surgery_losses", config={"displayModeBar": False})


def notes(scene: Scene) -> list[str]:
    lang = current()
    found = [CHANGES[scene.operation.change].says(lang) + _(".")]
    if isinstance(scene.model, Pretrained):
        found.append(scene.model.position.text(lang) + _("."))
    if any(layer.mask == "causal" for layer in scene.layers("before")):
        found.append(_("The causal mask still tells something of the order: a word sees only what stands before it."))
    unknown = unknown_words(scene)
    if unknown:
        found.append(
            _("The model does not know these, and all of them look alike to it: {unknown}").format(
                unknown=" ".join(map(visible, unknown[:20]))
            )
        )
    return found


def unknown_words(scene: Scene) -> list[str]:
    if isinstance(scene.model, Pretrained):
        strange = [
            info.raw.decode("utf-8", "replace")
            for tokens in scene.tokens
            for info, number in zip(tokens.infos, tokens.ids, strict=True)
            if number == scene.model.unknown_id
        ]
        return list(dict.fromkeys(strange))
    return list(scene.model.unknown(state.raw("a") + state.raw("b")))


def english(scene: Scene) -> None:
    """A way out where a model cannot read the sentences: a pair that every English model can."""
    if isinstance(scene.model, Pretrained) and unknown_words(scene):
        st.button(
            _("take {a} / {b}").format(a=ENGLISH[0], b=ENGLISH[1]),
            on_click=_take_english,
        )


def _take_english() -> None:
    for name, sentence in zip("ab", ENGLISH, strict=True):
        state.mend(name)
        st.session_state[name] = sentence


def badge(scene: Scene) -> str:
    return scene.model.badge(current())


# ---------------------------------------------------------------- details
FORMULAS = {
    (
        "absolute",
        "mean",
    ): r"x_i + E_i \;\longrightarrow\; x_i + \bar E,\qquad \bar E = \frac{1}{n-1}\sum_{p=1}^{n-1} E_p",
    ("absolute", ""): r"x_i + E_i \;\longrightarrow\; x_i + E_{p_i}",
    ("rotary", ""): r"(R_i q_i)^\top (R_j k_j) \;\longrightarrow\; (R_{p_i} q_i)^\top (R_{p_j} k_j)",
    ("bias", "remove"): r"q_i^\top k_j + b(j - i) \;\longrightarrow\; q_i^\top k_j",
    ("bias", ""): r"q_i^\top k_j + b(j - i) \;\longrightarrow\; q_i^\top k_j + b(p_j - p_i)",
}
TOLD = {
    "freeze": r"p_i = {n}",
    "shift": r"p_i = i + {n}",
    "scale": r"p_i = {n}\,i",
    "shuffle": r"p = \mathrm{{permutation\ of\ }}0 \dots L-1,\ \mathrm{{seed\ }}{n}",
}


def formula(scene: Scene) -> None:
    kind, change = surgery.kind_of(scene.model), scene.operation.change
    told = TOLD.get(change, "").format(n=scene.operation.amount)
    st.latex(FORMULAS.get((kind, change), FORMULAS[kind, ""]) + (r",\qquad " + told if told else ""))
    for name, traces in (("before", scene.outcome.before), ("after", scene.outcome.after)):
        a, b = (trace.pooled.astype(np.float64) for trace in traces)
        st.latex(
            rf"\mathrm{{{name}}}:\quad \cos(\bar a, \bar b) = \frac{{\bar a \cdot \bar b}}{{|\bar a|\,|\bar b|}} = "
            rf"\frac{{{a @ b:.5f}}}{{{np.linalg.norm(a):.5f} \cdot {np.linalg.norm(b):.5f}}} = "
            rf"\mathbf{{{surgery.cosine(a, b):.6f}}}"
        )


def code(scene: Scene) -> str:
    shown = {
        "before": f"outcome.before[0].layers[{scene.layer}].weights",
        "after": f"outcome.after[0].layers[{scene.layer}].weights",
        "change": f"abs(outcome.after[0].layers[{scene.layer}].weights - outcome.before[0].layers[{scene.layer}].weights)",
    }
    return f"""from posviz import models
from posviz.models import surgery

model = models.open_model({scene.name!r})
a, b = (model.tokenize(sentence) for sentence in ({state.raw("a")!r}, {state.raw("b")!r}))
outcome = surgery.operate(model, a, b, {scene.operation.call()})
print(outcome.alike)          # cosine of the sentence vectors, before and after
print(outcome.loss)           # nats a token, before and after; None where the model does not predict
print(outcome.changes.max())  # largest change of a weight
values = {shown[scene.stage]}  # (heads, queries, keys) of A
"""


def downloads(scene: Scene) -> None:
    def arrays() -> dict[str, np.ndarray]:
        outcome, found = scene.outcome, {"changes": scene.outcome.changes}
        for stage, traces, nats in (
            ("before", outcome.before, outcome.losses_before),
            ("after", outcome.after, outcome.losses_after),
        ):
            for side, trace, loss in zip("ab", traces, nats, strict=True):
                found[f"{side}_{stage}_weights"] = trace.layers[scene.layer].weights
                found[f"{side}_{stage}_pooled"] = trace.pooled
                if loss is not None:
                    found[f"{side}_{stage}_losses"] = loss
        return found

    def table() -> Iterator[list[object]]:
        yield ["sentence", "head", "query", "key", "before", "after"]
        for side, old, new in zip("AB", scene.layers("before"), scene.layers("after"), strict=True):
            after = new.weights
            for (h, i, j), weight in np.ndenumerate(old.weights):
                yield [side, h, i, j, float(weight), float(after[h, i, j])]

    save.row(
        "surgery",
        component="heads",
        data=bundle(scene),
        title=_("What does a trained model lose without its positions?"),
        caption=_("{badge} · {change} · {stage} · layer {layer}").format(
            badge=badge(scene),
            change=CHANGES[scene.operation.change].title(current()),
            stage=_(STAGES[scene.stage]),
            layer=scene.layer + 1,
        ),
        arrays=arrays,
        table=table,
        count=2 * sum(x.size for x in scene.weights),
    )
