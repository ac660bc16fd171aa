"""Studio: every head of a real model on both sentences, from the grid of all down to one weight."""

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from posviz import compare, models, survey
from posviz.models.base import Model, ModelTrace
from posviz.models.twins import store
from posviz.models.untrained import Untrained
from posviz.text import visible
from posviz.types import AttentionTrace, Refusal, Text, Tokens, shown
from posviz.ui import blocks, cached, controls, state, waiting
from posviz.ui.lang import N_, _, current
from posviz.ui.scenes import choose_model

TWIN = "twin:"
VIEW_NAMES = {
    "grid": N_("all heads"),
    "head": N_("one head"),
    "lines": N_("lines"),
    "weight": N_("one weight"),
    "steps": N_("steps"),
    "all": N_("together"),
}
SPECIAL_NAMES = {
    "shown": N_("special tokens shown"),
    "hidden": N_("special tokens hidden"),
    "renormalised": N_("hidden, rows renormalised"),
}
PART_NAMES = {
    "self": N_("encoder"),
    "decoder": N_("decoder"),
    "cross": N_("decoder looks at encoder"),
}
GATHER_NAMES = {"mean": N_("mean"), "max": N_("largest"), "rollout": N_("rollout")}


@dataclass(frozen=True, eq=False)
class Scene:
    """A model on both sentences, and what of it is shown. layer and head count from 0."""

    model: Model
    name: str
    a: ModelTrace
    b: ModelTrace
    view: str
    special: str
    part: str = "self"

    def traces(self, side: str) -> tuple[AttentionTrace, ...]:
        """One a layer: of the model, or of an encoder-decoder's chosen part."""
        trace = self.a if side == "a" else self.b
        if self.part == "cross":
            return trace.cross
        return trace.decoder.layers if self.part == "decoder" else trace.layers

    def layers(self, side: str) -> Iterator[survey.Seen]:
        """One layer of a sentence after another, as they are looked at."""
        return (self.see(layer) for layer in self.traces(side))

    def see(self, trace: AttentionTrace, head: int | None = None) -> survey.Seen:
        return survey.see(trace, head=head, special=self.special == "shown", renormalise=self.special == "renormalised")

    def tokens(self, side: str) -> Tokens:
        """The queries."""
        return self._tokens(self.traces(side)[0].tokens)

    def keys(self, side: str) -> Tokens:
        return self._tokens(self.traces(side)[0].keys)

    def _tokens(self, tokens: Tokens) -> Tokens:
        return tokens if self.special == "shown" else survey.without_special(tokens)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return compare.match(self.tokens("a"), self.tokens("b"))

    @cached_property
    def key_pairs(self) -> tuple[tuple[int, int], ...]:
        return compare.match(self.keys("a"), self.keys("b"))

    @property
    def n_layers(self) -> int:
        return len(self.traces("a"))

    @property
    def n_heads(self) -> int:
        return self.traces("a")[0].dims.n_heads

    @cached_property
    def survey(self) -> survey.Survey:
        return cached.survey(self)

    @cached_property
    def key(self) -> tuple:
        """Tells this scene's survey from all others."""
        # by the model itself, which it must not keep in memory: a folder of the same name may have changed
        model = self.model if isinstance(self.model, Untrained) else weakref.ref(self.model)
        return model, self.a.tokens, self.b.tokens, self.special, self.part

    @cached_property
    def place(self) -> tuple[int, int]:
        """(layer, head): the chosen one, else the one that looks most at the token before (in cross-attention
        there is none: the one that changes most)."""
        layer, head = state.get("slayer"), state.get("shead")
        if layer is not None and head is not None and layer <= self.n_layers and head < self.n_heads:
            return layer - 1, head
        scores = self.survey.scores.get("previous", self.survey.scores["change"])
        # of the two only one may be given: then the best of that layer, or of that head
        away = np.zeros(scores.shape, bool)
        if layer is not None and layer <= self.n_layers:
            away |= np.arange(self.n_layers)[:, None] != layer - 1
        if head is not None and head < self.n_heads:
            away |= np.arange(self.n_heads) != head
        scores = np.where(away, np.nan, scores)
        if np.isnan(scores).all():
            return 0, 0
        n, h = np.unravel_index(int(np.nanargmax(scores)), scores.shape)
        return int(n), int(h)

    @property
    def title(self) -> str:
        layer, head = self.place
        return _("layer {layer} · head {head}").format(layer=layer + 1, head=head)


def claim() -> str:
    return _("Every layer and head of a trained model, for both sentences and for their difference.")


# ---------------------------------------------------------------- which model
def model_names() -> dict[str, str]:
    """Key of every model that is here -> what the menu calls it; also the one a link or a person named."""
    names = {entry.key: entry.title(current()) for entry in models.catalog()}
    own = state.raw("smodel")
    return names if not own or own in names else {**names, own: shown(own)}


def chosen_name() -> str:
    """The model asked for; the twin of the page's encoding, or RoPE's, where nobody asked."""
    wanted = state.raw("smodel")
    if wanted:
        return wanted
    trained = store.available()
    encoding = state.raw("encoding")
    return f"{TWIN}{encoding if encoding in trained else 'rope'}" if trained else "untrained"


def find_model(setting: state.Setting, name: str) -> Model:
    """The model, opened with a bar that shows how far that is."""
    if name == "untrained":
        return Untrained(
            setting.spec,
            setting.dims,
            setting.seed,
            setting.mask,
            setting.max_len,
            state.get("unit"),
            setting.precision,
        )
    with waiting.shown() as progress:
        return models.open_model(name, progress=progress)


# ---------------------------------------------------------------- the page
def toolbar() -> None:
    """Which model, what of it, and how."""
    with st.container(horizontal=True, vertical_alignment="center"):
        name, names = chosen_name(), model_names()
        controls.pick("smodel", _("model"), names, style="select", collapsed=True, width=210, shown=name)
        views = {view: _(text) for view, text in VIEW_NAMES.items()}
        controls.pick("sview", _("view"), views, collapsed=True)
        choose_model.other(short=True)


def agreed() -> bool:
    """Whether the model may be opened; if not, this asks."""
    if choose_model.agreed(chosen_name()):
        return True
    choose_model.ask(chosen_name())
    return False


def build(setting: state.Setting) -> Scene:
    state.check()
    name = chosen_name()
    for side in "ab":
        if name == "untrained" or not state.raw(side):
            setting.tokens(side)  # an empty sentence is refused in the same words as everywhere
    model = find_model(setting, name)
    a, b = traces(model, name)
    view, special, part = state.get("sview"), state.get("sspecial"), state.get("spart")
    if a.decoder is None:
        part = "self"  # only an encoder-decoder has more
    scene = Scene(model, name, a, b, view, special, part)
    for side in "ab":
        if not len(scene.tokens(side)) or not len(scene.keys(side)):
            raise Refusal(
                Text(
                    "sentence {side} has only special tokens; show them, or type a word",
                    "句子 {side} 只有特殊词元；请显示它们，或输入一个词",
                ),
                field=side,
                side=side.upper(),
            )
    return scene


def traces(model: Model, name: str) -> tuple[ModelTrace, ModelTrace]:
    """Of both sentences; a real model says how far it is."""
    found = []
    for side in "ab":
        with waiting.shown(f"{side.upper()} · ") as progress, cached.telling(progress):
            found.append(cached.model_trace(model, name, state.raw(side)))
    return found[0], found[1]


def strip(scene: Scene) -> None:
    """The sentences in the model's own pieces; beside them which layer and head, and its special tokens."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="strip_row"):
        blocks.strip(scene.tokens("a"), scene.tokens("b"))
        with st.container(horizontal=True, vertical_alignment="center", width="content"):  # they wrap as one
            if scene.view in ("head", "lines", "weight", "steps"):
                layer, head = scene.place
                layers = {n + 1: _("layer {n}").format(n=n + 1) for n in range(scene.n_layers)}
                heads = {h: _("head {h}").format(h=h) for h in range(scene.n_heads)}
                _jump("slayer", _("layer"), layers, layer + 1, "shead", head)
                _jump("shead", _("head"), heads, head, "slayer", layer + 1)
            if scene.a.decoder is not None:
                controls.pick(
                    "spart",
                    _("part"),
                    {key: _(text) for key, text in PART_NAMES.items()},
                    style="select",
                    collapsed=True,
                    width=230,
                )
            if scene.view not in ("weight", "steps") and any(scene.a.tokens.special):
                names = {key: _(text) for key, text in SPECIAL_NAMES.items()}
                controls.pick("sspecial", _("special tokens"), names, style="select", collapsed=True, width=230)


def _jump(name: str, label: str, options: Mapping[int, str], value: int, other: str, kept: int) -> None:
    """A choice of layer or head that keeps the other one where it is, also when the page chose that."""
    key = f"w_{name}"
    st.session_state[key] = value

    def commit() -> None:
        state.put(name, st.session_state[key])
        state.put(other, kept)

    st.selectbox(
        label,
        list(options),
        format_func=lambda v: options.get(v, str(v)),
        key=key,
        filter_mode=None,
        width=130,
        label_visibility="collapsed",
        on_change=commit,
    )


def badge(scene: Scene) -> str:
    return scene.model.badge(current())


def proof(scene: Scene) -> list[blocks.Number]:
    found = scene.survey
    layers, heads = found.shape
    numbers = []
    scores = found.scores.get("previous")
    if scores is not None and not np.isnan(scores).all():
        n, h = np.unravel_index(int(np.nanargmax(scores)), scores.shape)
        numbers.append(
            blocks.Number(
                blocks.compact(float(scores[n, h])),
                _("the clearest head for the token before: layer {layer} · head {head}, in A").format(
                    layer=n + 1, head=h
                ),
                _("looking at all alike: {value}").format(value=blocks.compact(found.uniform["previous"], 2)),
            )
        )
    change = found.scores["change"]
    if not np.isnan(change).all():
        n, h = np.unravel_index(int(np.nanargmax(change)), change.shape)
        numbers.append(
            blocks.Number(
                blocks.compact(float(change[n, h])),
                _("changes most from A to B: layer {layer} · head {head}").format(layer=n + 1, head=h),
                _("mean of {count} heads: {value}").format(
                    count=layers * heads, value=blocks.compact(float(np.nanmean(change)), 2)
                ),
            )
        )
    if scene.special != "hidden":
        numbers.append(
            blocks.Number(
                blocks.compact(found.row_error),
                _("each row of weights adds up to 1: largest error"),
                _("should be 0"),
                found.row_error < 1e-4,
            )
        )
    return numbers


def _not_there(scene: Scene) -> list[str]:
    """What the link asks for and this model, or these sentences, do not have: something else is shown."""
    layer, head, found = state.get("slayer"), state.get("shead"), []
    if (layer or 1) > scene.n_layers or (head or 0) >= scene.n_heads:
        found.append(
            _(
                "There is no layer {layer} · head {head} among {layers} layers of {heads} heads; shown is {shown}."
            ).format(
                layer=layer or "–",
                head="–" if head is None else head,
                layers=scene.n_layers,
                heads=scene.n_heads,
                shown=scene.title,
            )
        )
    sizes = {
        group: len(tokens(side)) for side in "ab" for group, tokens in ((side, scene.tokens), (f"{side}k", scene.keys))
    }
    outside = [f"{g}{i}" for g, places in state.get("slines").items() for i in places if i >= sizes[g]]
    if scene.view == "lines" and outside:
        found.append(_("These tokens of the link are not in the sentences: {list}").format(list=" ".join(outside)))
    cell = state.get("scell")
    if scene.view in ("weight", "steps") and cell:
        side, i, j = cell
        first = scene.traces(side)[0]
        if i >= len(first.tokens) or j >= len(first.keys):
            found.append(_("The weight {cell} of the link is not in the sentences.").format(cell=f"{side}.{i}.{j}"))
    if scene.view == "all":
        chosen = {"slayers": range(1, scene.n_layers + 1), "sheads": range(scene.n_heads)}
        gone = [n for name, there in chosen.items() for n in state.get(name) if int(n) not in there]
        if gone:
            found.append(_("Layers or heads that this model does not have: {list}").format(list=" ".join(gone)))
    if state.get("spart") != "self" and scene.a.decoder is None:
        found.append(_("This model has no decoder; shown is its attention to its own sentence."))
    return found


def notes(scene: Scene) -> list[str]:
    found = _not_there(scene)
    unknown = getattr(scene.model, "unknown", None)
    if scene.name.startswith(TWIN) and unknown and (missing := unknown(state.raw("a") + state.raw("b"))):
        found.append(
            _(
                "The twins learned {n} characters; these are not among them and all look alike to them: {unknown}"
            ).format(n=f"{scene.model.card['data']['vocabulary']:,}", unknown=" ".join(map(visible, missing[:20])))
        )
    if alone := _unmatched(scene):
        found.append(_("Without a partner, so not in A − B: {list}").format(list=alone))
    if scene.special == "hidden":
        found.append(_("Without the special tokens the rows no longer add up to 1."))
    elif scene.special == "renormalised":
        found.append(
            _("Every row is divided by what the special tokens leave of it: not what the model computes with.")
        )
    return found


def _unmatched(scene: Scene) -> str:
    """The tokens that only one sentence has, "A 猫·3 · B 狗·0"."""
    said = []
    for side, place in (("a", 0), ("b", 1)):
        matched = {pair[place] for pair in scene.pairs}
        labels = [visible(label) for i, label in enumerate(scene.tokens(side).labels) if i not in matched]
        if labels:
            more = f" +{len(labels) - 12}" if len(labels) > 12 else ""
            said.append(f"{side.upper()} {' '.join(labels[:12])}{more}")
    return " · ".join(said)


def made(scene: Scene) -> str:
    """The lines of code that give ``layers_a`` and ``layers_b``, one trace a layer."""
    a, b = state.raw("a"), state.raw("b")
    if isinstance(scene.model, Untrained):
        model = scene.model
        dims = f"Dims(d_model={model.dims.d_model}, n_heads={model.dims.n_heads})"
        head = f"""from posviz import Dims, encodings, survey
from posviz.models.untrained import Untrained

model = Untrained(
    {model.spec.call()}, {dims}, seed={model.seed}, mask={model.mask!r},
    max_len={model.max_len}, unit={model.unit!r}, precision={model.precision!r},
)
"""
    else:
        head = f"""from posviz import models, survey

model = models.open_model({scene.name!r})
"""
    of = {"self": "layers", "decoder": "decoder.layers", "cross": "cross"}[scene.part]
    return head + f"layers_a, layers_b = (model.trace(model.tokenize(s)).{of} for s in ({a!r}, {b!r}))\n"


def see_code(scene: Scene) -> str:
    """How the snippet looks at a layer."""
    if scene.special == "shown":
        return "survey.see"
    return f"lambda layer: survey.see(layer, special=False, renormalise={scene.special == 'renormalised'})"
