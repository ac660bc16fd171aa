"""Myths: predict, reveal, the live measurement, a counter-example, one line why."""

from dataclasses import dataclass
from html import escape

import streamlit as st

from posviz import myths as core
from posviz.types import Refusal
from posviz.ui import blocks, cached, save, state
from posviz.ui.lang import N_, _

WORDS = {"true": N_("true"), "false": N_("false"), "depends": N_("it depends")}


@dataclass(frozen=True)
class Scene:
    """What is tried, what was guessed (myth -> verdict), and the findings of the revealed ones."""

    case: core.Case
    guesses: dict[str, str]
    found: dict[str, core.Finding]


def toolbar() -> None:
    st.button(_("Reveal all"), on_click=_reveal_all)
    st.button(_("Start again"), on_click=state.put, args=("guesses", ""))


def _reveal_all() -> None:
    guesses = _guesses()
    state.put("guesses", _written({key: guesses.get(key, "shown") for key in core.MYTHS}))


def _guesses() -> dict[str, str]:
    """What was guessed so far; nothing, where the link says what is no guess."""
    try:
        return dict(state.get("guesses"))
    except Refusal:
        return {}


def _written(guesses: dict[str, str]) -> str:
    return ",".join(f"{key}:{guess}" for key, guess in guesses.items())


def build(setting: state.Setting) -> Scene:
    state.check()
    case = core.Case(setting.dims, setting.max_len, state.get("base"), setting.seed)
    guesses = state.get("guesses")
    return Scene(case, guesses, {key: cached.finding(key, case) for key in guesses})


def show(setting: state.Setting, scene: Scene) -> None:
    for number, (key, myth) in enumerate(core.MYTHS.items(), 1):
        with st.container(border=True, key=f"myth_{key}"):
            left, right = st.columns([5, 3], vertical_alignment="center")
            with left:
                st.html(f'<p class="pv-myth"><b>{number}</b> {escape(myth.sentence(setting.lang))}</p>')
            with right:
                _predict(key, scene.guesses.get(key))
            if key in scene.found:
                _reveal(setting, myth, scene.guesses[key], scene.found[key])


def _predict(key: str, guess: str | None) -> None:
    name = f"w_guess_{key}"
    st.session_state[name] = guess if guess in WORDS else None
    st.segmented_control(
        _("your prediction"),
        list(WORDS),
        format_func=lambda word: _(WORDS[word]),
        key=name,
        label_visibility="collapsed",
        on_change=_guessed,
        args=(key, name),
    )


def _guessed(key: str, name: str) -> None:
    guesses = _guesses()
    guess = st.session_state[name]
    if guess is None:
        guesses.pop(key, None)
    else:
        guesses[key] = guess
    state.put("guesses", _written(guesses))


def _reveal(setting: state.Setting, myth: core.Myth, guess: str, found: core.Finding) -> None:
    st.html(_revealed(setting.lang, myth, guess, found))


def _revealed(lang: str, myth: core.Myth, guess: str, found: core.Finding) -> str:
    """Verdict, numbers, counter-example and why, as HTML."""
    if found.verdict is None:
        verdict, mark = _("Not measured yet"), ""
    else:
        verdict = _("Measured: {verdict}").format(verdict=_(WORDS[found.verdict]))
        mark = "" if guess not in WORDS else " pv-right" if guess == found.verdict else " pv-wrong"
    said = _("you said: {guess}").format(guess=_(WORDS[guess])) if guess in WORDS else ""
    numbers = [blocks.Number(blocks.compact(n.value), n.label(lang), n.expected(lang), n.holds) for n in found.numbers]
    example = _("Counter-example: {text}").format(text=found.example(lang)) if found.verdict else found.example(lang)
    why = _("Why: {text}").format(text=myth.why(lang))
    return (
        f'<p class="pv-verdict{mark}"><b>{escape(verdict)}</b> <span>{escape(said)}</span></p>'
        f'{blocks.numbers_html(numbers)}<p class="pv-note">{escape(example)}</p><p class="pv-note">{escape(why)}</p>'
    )


def proof(scene: Scene) -> list[blocks.Number]:
    said = {key: guess for key, guess in scene.guesses.items() if guess in WORDS}
    right = sum(scene.found[key].verdict == guess for key, guess in said.items())
    counted = sum(scene.found[key].verdict is not None for key in said)
    return [
        blocks.Number(str(len(core.MYTHS)), _("sentences on this page")),
        blocks.Number(str(len(said)), _("of them predicted")),
        blocks.Number(f"{right} / {counted}", _("predictions that the measurement confirms")),
    ]


def formula() -> None:
    st.latex(r"\mathrm{sim}(p, p+k) = \frac{PE(p)\cdot PE(p+k)}{d/2} = \frac{2}{d}\sum_i \cos(k\,\omega_i)")
    st.latex(r"\frac{2}{d}\sum_{j=1}^{d/2}|S_j|,\quad S_j = \sum_{i<j} e^{\mathrm{i}k\omega_i}")


def code(setting: state.Setting) -> str:
    dims = setting.dims
    return f"""from posviz import Dims, myths

case = myths.Case(Dims(d_model={dims.d_model}, n_heads={dims.n_heads}), max_len={setting.max_len}, base={state.get("base")!r}, seed={setting.seed})
values = {{key: myths.measure(key, case) for key in myths.MYTHS}}
for key, found in values.items():
    print(myths.MYTHS[key].sentence.en, "->", found.verdict)
    for number in found.numbers:
        print("   ", number.label.en, number.value, number.expected.en)
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    """What has been revealed so far."""

    def lines() -> list[list[object]]:
        found: list[list[object]] = [["sentence", "verdict", "what", "value"]]
        for key, finding in scene.found.items():
            sentence = core.MYTHS[key].sentence(setting.lang)
            found += [[sentence, finding.verdict or "", n.label(setting.lang), n.value] for n in finding.numbers]
        return found

    def body() -> str:
        return "".join(
            f'<p class="pv-myth">{escape(core.MYTHS[key].sentence(setting.lang))}</p>'
            + _revealed(setting.lang, core.MYTHS[key], scene.guesses[key], finding)
            for key, finding in scene.found.items()
        )

    case = scene.case
    save.document(
        "myths",
        title=_("True, false, or does it depend?"),
        caption=f"d_model {case.dims.d_model} · H {case.dims.n_heads} · max_len {case.max_len} · base {case.base:g}",
        body=body,
        table=lines,
    )
