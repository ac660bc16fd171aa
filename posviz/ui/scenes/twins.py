"""Twins: the same opening continued by models that differ only in how they know the position."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import streamlit as st

from posviz import encodings, figures
from posviz.models.twins import corpus, sample, store
from posviz.text import visible
from posviz.types import Refusal, Text
from posviz.ui import blocks, controls, state
from posviz.ui.lang import _, current

MAX_OPENING = 40
SMOOTH = 8  # positions in a mean of the curves: about one line, whose marks are easy and whose first word is hard
_KEPT: OrderedDict[tuple, str] = OrderedDict()  # finished texts, for all sessions
_MOST_KEPT = 512


@dataclass(frozen=True)
class Scene:
    """What is asked for, the twins that are there, and what was measured on them."""

    opening: str
    form: str
    temperature: float
    dice: int
    names: tuple[str, ...]
    results: Mapping[str, Any]

    def key(self, name: str) -> tuple:
        return name, self.opening, self.form, self.temperature, self.dice


def claim() -> str:
    return _("The same poems, seed and steps for all: only the position encoding differs.")


def toolbar() -> None:
    forms = {"quatrain": _("quatrain"), "verse": _("longer verse"), "song": _("song")}
    with st.container(horizontal=True, vertical_alignment="center"):
        controls.words("opening", _("opening"), placeholder=_("how the poem begins"), width=260)
        controls.pick("form", _("form"), forms, collapsed=True)
        st.button(_("throw the dice again"), key="again", on_click=_again)
        with st.popover(_("dice")):
            controls.number("dice", _("seed of the dice"), step=1, help=_("All twins throw the same dice."))
            controls.number(
                "temperature",
                _("temperature"),
                step=0.1,
                help=_("0 takes the likeliest character; 1 draws as the model says; above, more at random."),
            )


def _again() -> None:
    try:
        dice = state.get("dice")
    except Refusal:
        dice = -1
    state.put("dice", dice + 1)


def build(setting: state.Setting) -> Scene:
    state.check()
    opening = state.raw("opening").strip()
    if len(opening) > MAX_OPENING:
        raise Refusal(
            Text(
                "the opening may have up to {limit} characters, got {got}",
                "开头最多 {limit} 个字，现在是 {got} 个",
            ),
            field="opening",
            limit=MAX_OPENING,
            got=len(opening),
        )
    names = store.available()
    if not names:
        raise Refusal(
            Text(
                "no trained twin is here; `python -m posviz.models.twins train` makes them",
                "这里没有训练好的孪生模型；用 `python -m posviz.models.twins train` 训练",
            ),
            field="twins",
        )
    return Scene(opening, state.get("form"), state.get("temperature"), state.get("dice"), names, store.results())


# ---------------------------------------------------------------- writing
def show(scene: Scene) -> None:
    """Every twin's poem; those not yet written appear character by character, until somebody stops them."""
    place, below = st.empty(), st.empty()
    kept = {name: text for name in scene.names if (text := _kept(scene, name)) is not None}
    missing = [name for name in scene.names if name not in kept]
    of, begun = st.session_state.get("_partial", (None, {}))
    texts = dict.fromkeys(scene.names, "") | (begun if of == scene.key("") else {}) | kept
    if missing and st.session_state.get("_stopped") == scene.key(""):
        _draw(place, scene, texts, set())
        below.button(_("go on writing"), on_click=_stop, args=(None,))
        return
    _draw(place, scene, texts, set(missing))
    if missing:
        below.button(_("stop writing"), on_click=_stop, args=(scene.key(""),))
        for grown in _write(scene, missing):
            # A poem that was stopped is written again from its beginning, with the same dice: nothing shown is taken back.
            longer = {name: text for name, text in grown.items() if len(text) > len(texts[name])}
            if not longer and grown:
                continue
            texts |= longer
            st.session_state["_partial"] = scene.key(""), {name: texts[name] for name in missing}
            _draw(place, scene, texts, set(grown))
        _draw(place, scene, texts, set())
        below.empty()


def _kept(scene: Scene, name: str) -> str | None:
    """A finished text: of this server, else one that was written with the weights, so that a lecture begins at once."""
    if (text := _KEPT.get(scene.key(name))) is not None:
        return text
    asked = {"opening": scene.opening, "form": scene.form, "temperature": scene.temperature, "seed": scene.dice}
    shipped = (prompt["texts"] for prompt in scene.results.get("written", []) if asked.items() <= prompt.items())
    return next(shipped, {}).get(name)


def _stop(key: tuple | None) -> None:
    st.session_state["_stopped"] = key


def _write(scene: Scene, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """The texts of the twins that are still writing, one character longer each time."""
    pens = {
        name: sample.write(
            store.load(name).model,
            scene.opening,
            form=scene.form,
            temperature=scene.temperature,
            seed=scene.dice,
            limit=sample.MAX_NEW,
        )
        for name in names
    }
    texts = dict.fromkeys(names, "")
    while pens:
        for name in list(pens):
            piece = next(pens[name], None)
            if piece is None:
                del pens[name]
                _KEPT[scene.key(name)] = texts[name]
                while len(_KEPT) > _MOST_KEPT:
                    _KEPT.popitem(last=False)
            else:
                texts[name] += piece
        yield {name: texts[name] for name in pens}


def _draw(place: Any, scene: Scene, texts: Mapping[str, str], writing: set[str]) -> None:
    cards = "".join(_card(scene, name, texts[name], name in writing) for name in scene.names)
    count = len(scene.names)  # side by side, on a narrow page in two rows
    row = count if count <= 4 else -(-count // 2)
    place.html(f'<div class="pv-poems" style="--pv-all: {count}; --pv-row: {row}">{cards}</div>')


def _card(scene: Scene, name: str, text: str, writing: bool) -> str:
    title = encodings.ENCODINGS[name].title(current())
    whole = scene.opening + text
    lines, wrong = sample.lines(whole), set()
    if scene.form != "song":
        wrong = set(sample.malformed_lines(whole))
    rows, at = [], 0
    for i, (words, mark) in enumerate(lines):
        given = max(0, min(len(words), len(scene.opening) - at))
        at += len(words) + len(mark)
        body = f"<b>{escape(visible(words[:given]))}</b>{escape(words[given:])}{escape(mark)}"
        length = _("{n} characters").format(n=len(words))
        note = f"<i>{escape(length)}</i>" if i in wrong else ""
        rows.append(f'<p class="{"pv-wrong" if i in wrong else ""}">{body}{note}</p>')
    cursor = '<span class="pv-cursor">▍</span>' if writing else ""
    verdict = "" if writing else _verdict(scene, whole, bool(wrong))
    return f'<article class="pv-poem"><h2>{escape(title)}</h2><div lang="zh">{"".join(rows)}{cursor}</div>{verdict}</article>'


def _verdict(scene: Scene, whole: str, wrong: bool) -> str:
    if scene.form == "quatrain":
        good = sample.well_formed(whole)
        text = _("a quatrain: four lines of one length") if good else _("not a quatrain")
    elif scene.form == "verse":
        good, text = not wrong, _("all lines alike") if not wrong else _("lines of different lengths")
    else:
        return ""
    return f'<footer class="{"pv-good" if good else "pv-bad"}">{escape(text)}</footer>'


# ---------------------------------------------------------------- what was measured
def _of(scene: Scene, name: str) -> Mapping[str, Any]:
    return scene.results["twins"][name]


def _measured(scene: Scene) -> list[str]:
    return [name for name in scene.names if name in scene.results.get("twins", {})]


def proof(scene: Scene) -> list[blocks.Number]:
    measured = _measured(scene)
    if not measured:
        return []
    title = {name: encodings.ENCODINGS[name].title(current()) for name in measured}
    shape = {name: _of(scene, name)["well_formed"]["mean"] for name in measured}
    far = {name: _of(scene, name)["loss_4x"]["mean"] - _of(scene, name)["loss_1x"]["mean"] for name in measured}
    best, worst, steady, lost = (
        max(shape, key=shape.get),
        min(shape, key=shape.get),
        min(far, key=far.get),
        max(far, key=far.get),
    )
    return [
        blocks.Number(
            f"{100 * shape[best]:.0f} %",
            _("{name}: well-formed quatrains among {n} samples").format(name=title[best], n=scene.results["samples"]),
            _("{name}: {share}").format(name=title[worst], share=f"{100 * shape[worst]:.0f} %"),
        ),
        blocks.Number(
            f"{far[steady]:+.2f}".replace("-", "−"),
            _("{name}: loss at four times the trained length, against the trained length").format(name=title[steady]),
            _("nats a token"),
        ),
        blocks.Number(
            f"{far[lost]:+.2f}".replace("-", "−"),
            _("{name}: the same").format(name=title[lost]),
            _("nats a token"),
        ),
    ]


def losses(setting: state.Setting, scene: Scene) -> None:
    """Loss against position on verse four times as long as any text in training."""
    measured = _measured(scene)
    if not measured:
        return
    # Each point is the mean of the SMOOTH positions that end there: nothing beyond the trained length is in it before.
    window, missing = np.ones(SMOOTH) / SMOOTH, np.full(SMOOTH - 1, np.nan)
    curves = {
        encodings.ENCODINGS[name].title(setting.lang): np.concatenate(
            [missing, np.convolve(_of(scene, name)["by_position"], window, "valid")]
        )
        for name in measured
    }
    figure = figures.loss_by_position(
        curves,
        trained_len=corpus.TRAINED_LEN - 1,  # the last that is guessed in training
        title=_("Who can go on where training stopped?"),
        parameters=_("{n} held-out poems of sixteen lines; mean over the last {k} positions").format(
            n=scene.results["held_out"]["verse4"], k=SMOOTH
        ),
        dark=st.context.theme.type == "dark",
        lang=setting.lang,
    )
    figure.update_layout(width=None, autosize=True, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)")
    st.plotly_chart(figure, theme=None, key="twins_losses", config={"displayModeBar": False})


def tables(setting: state.Setting, scene: Scene) -> None:
    measured = _measured(scene)
    if not measured:
        return

    def spread(name: str, key: str, digits: int = 3, factor: float = 1.0) -> str:
        values = [factor * v for v in _of(scene, name)[key]["each"]]
        middle = f"{np.mean(values):.{digits}f}"
        return f"{middle} ± {(max(values) - min(values)) / 2:.{digits}f}" if len(values) > 1 else middle

    blocks.table(
        [
            "",
            _("loss a character"),
            _("loss a mark"),
            _("trained length"),
            _("twice"),
            _("four times"),
            _("well-formed, %"),
        ],
        [
            [
                encodings.ENCODINGS[name].title(setting.lang),
                spread(name, "loss_characters"),
                spread(name, "loss_marks"),
                *(spread(name, f"loss_{length}") for length in ("1x", "2x", "4x")),
                spread(name, "well_formed", 1, 100.0),
            ]
            for name in measured
        ],
        _("Measured on poems that no twin has seen (nats, lower is better)"),
        _(
            "Loss a character and a mark: {n} quatrains. The three lengths: {m} poems of sixteen lines, by position. {seeds}"
        ).format(
            n=scene.results["held_out"]["quatrain"],
            m=scene.results["held_out"]["verse4"],
            seeds=_seeds(scene, measured),
        ),
    )


def _seeds(scene: Scene, measured: Sequence[str]) -> str:
    counts = {len(_of(scene, name)["seeds"]) for name in measured}
    if counts == {1}:
        return _("One seed each: differences below 2 % mean nothing.")
    return _("±: half the spread over {n} seeds.").format(n="–".join(map(str, sorted({min(counts), max(counts)}))))


def notes(scene: Scene) -> list[str]:
    found = []
    if "shaw" in scene.names:
        found.append(_("The layers of Shaw's twin share one table; in the paper every layer has its own."))
    unknown = store.load(scene.names[0]).unknown(scene.opening)
    if not unknown:
        return found
    return [
        *found,
        _("The twins learned {n} characters; these are not among them and all look alike to them: {unknown}").format(
            n=f"{len(corpus.vocabulary()):,}", unknown=" ".join(map(visible, unknown))
        ),
    ]


def badge(setting: state.Setting, scene: Scene) -> str:
    return store.load(scene.names[0]).badge(setting.lang)


def code(scene: Scene) -> str:
    return f"""from posviz.models.twins import sample, store

values = {{}}
for name in store.available():
    model = store.load(name).model
    pieces = sample.write(model, {scene.opening!r}, form={scene.form!r}, temperature={scene.temperature}, seed={scene.dice})
    values[name] = {scene.opening!r} + "".join(pieces)
    print(name, values[name])
"""
