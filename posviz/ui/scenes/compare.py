"""Compare: one row for every encoding, every cell measured, sorted and filtered."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import streamlit as st

from posviz import encodings
from posviz.comparison import CALL, EXACT, ROWS, Cost, Measured
from posviz.encodings import Encoding
from posviz.types import Refusal
from posviz.ui import blocks, cached, controls, save, state
from posviz.ui.lang import N_, _, current

ENTERS = {
    "all": N_("all"),
    "none": N_("nowhere"),
    "additive": N_("embedding"),
    "rotary": N_("query and key"),
    "bias": N_("score"),
}
NATURE = {"absolute": N_("absolute"), "relative": N_("relative"), "content": N_("content")}
SHARING = {"": "", "model": N_("/ model"), "layer": N_("/ layer")}
SORT = {
    "registry": N_("usual order"),
    "name": N_("name"),
    "parameters": N_("trainable numbers"),
    "time": N_("time"),
    "memory": N_("memory"),
    "reversal": N_("reversal"),
    "spread": N_("spread"),
}


@dataclass(frozen=True)
class Row:
    """One encoding: its spec, its measurements, and its cost beside no position (time as a ratio, bytes more)."""

    spec: Encoding
    found: Measured
    cost: Cost
    slower: float
    more: int


@dataclass(frozen=True)
class Scene:
    """All rows by name, the names shown in order, and what the sizes do not allow."""

    rows: dict[str, Row]
    shown: tuple[str, ...]
    left_out: dict[str, Refusal]


def toolbar() -> None:
    """Which rows, and in which order."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_tools"):
        controls.pick("enters", _("enters at"), {key: _(text) for key, text in ENTERS.items()})
        controls.pick("sort", _("sorted by"), {key: _(text) for key, text in SORT.items()}, style="select", width=190)


def build(setting: state.Setting) -> Scene:
    state.check()
    tokens, dims = setting.tokens("a"), setting.dims
    rows, left_out = {}, {}
    with st.spinner(_("Measuring {n} encodings …").format(n=len(encodings.ENCODINGS))):
        plain = cached.cost(encodings.make("none"), dims)
        for name in encodings.ENCODINGS:
            spec = setting.other(name)
            found = cached.measured(spec, dims, setting.max_len, tokens, seed=setting.seed)
            if isinstance(found, Refusal):
                left_out[name] = found
                continue
            cost = cached.cost(spec, dims)
            rows[name] = Row(spec, found, cost, cost.seconds / plain.seconds, cost.memory - plain.memory)
    wanted = state.get("enters")
    names = [name for name, row in rows.items() if wanted in ("all", row.spec.kind)]
    order = _ORDER.get(state.get("sort"))
    if order:
        names.sort(key=lambda name: order(rows[name]))
    return Scene(rows, tuple(names), left_out)


_ORDER: dict[str, Callable[[Row], object]] = {
    "name": lambda row: row.spec.title.en.lower(),
    "parameters": lambda row: row.found.parameters,
    "time": lambda row: row.slower,
    "memory": lambda row: row.cost.memory,
    "reversal": lambda row: row.found.reversal,
    "spread": lambda row: row.found.scores,
}


def _head(scene: Scene) -> list[tuple[str, str]]:
    """Each column's name, and what is measured in it."""
    plain = f"{scene.rows['none'].cost.memory / 1024:,.0f}"
    return [
        (_("encoding"), ""),
        (_("enters at"), ""),
        (_("trainable"), _("trainable numbers for these sizes, and whether every layer has its own")),
        (_("nature"), _("absolute, relative or content-dependent, by these measurements")),
        (_("A read backwards"), _("largest change of the sentence vector; only rounding: cannot tell left from right")),
        (_("at max_len"), _("is the first position beyond max_len defined?")),
        (_("mean |out − x|"), _("mean size of what is added to the embedding, over max_len positions")),
        (_("spread, alike"), _("similarity of positions: largest deviation at one distance, relative")),
        (_("spread, scores"), _("scores of equal words at one distance: how far they differ, relative")),
        (_("time"), _("one attention call of {n} tokens, beside no position").format(n=CALL)),
        (
            _("extra memory, KiB"),
            _(
                "most memory at one moment of one attention call of {n} tokens, all tensors together, above the {plain} KiB of no position"
            ).format(n=CALL, plain=plain),
        ),
        (_("paper"), ""),
        (_("used by"), ""),
    ]


def _cells(row: Row) -> list[str]:
    """The cells of a row as HTML."""
    lang, spec, found = current(), row.spec, row.found
    shared = _(SHARING[spec.sharing]) if spec.sharing else ""
    small = f" <small>{escape(shared)}</small>" if shared else ""
    turned = blocks.compact(found.reversal, 2) if found.directional else _zero(found.reversal)
    models = ", ".join(_link(model.url, model.name) for model in spec.used_by)
    return [
        escape(spec.title(lang)),
        escape(_(ENTERS[spec.kind])),
        f'<span title="{escape(spec.starts(lang))}">{found.parameters:,}{small}</span>',
        escape(_(NATURE[found.nature])),
        turned,
        escape(_("defined") if found.reach else _("refused")),
        "–" if found.shift is None else blocks.compact(found.shift, 2),
        "–" if found.spread is None else _spread(found.spread),
        _spread(found.scores),
        f"{row.slower:.2g}×",
        f"{row.more / 1024:+,.0f}".replace("-", "−") if row.more else "0",
        _link(spec.paper.url, f"{spec.paper.authors} {spec.paper.year}"),
        models or "–",
    ]


def _kept(text: str) -> str:
    """A column's name; |out − x| is not broken over lines."""
    return escape(text).replace(" − ", "\u00a0−\u00a0")


def _spread(value: float) -> str:
    return _zero(value) if value < EXACT else blocks.compact(value, 2)


def _zero(value: float) -> str:
    """Nothing but rounding; the number itself when the pointer rests on it."""
    return f'<span title="{escape(blocks.compact(value, 2))}">≈ 0</span>'


def _link(url: str, text: str) -> str:
    return f'<a href="{escape(url)}" target="_blank" rel="noreferrer">{escape(text)}</a>'


def show(scene: Scene) -> None:
    st.html(table(scene))


def table(scene: Scene) -> str:
    """The comparison as HTML: the first column stays while the others are scrolled."""
    head = "".join(f'<th scope="col" title="{escape(hint)}">{_kept(text)}</th>' for text, hint in _head(scene))
    body = ""
    for name in scene.shown:
        first, *rest = _cells(scene.rows[name])
        body += f'<tr id="row-{name}"><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
    name = escape(_("Comparison of encodings"))
    return (
        f'<div class="pv-wide pv-ready" tabindex="0" role="region" aria-label="{name}">'
        f'<table class="pv-table pv-all"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def proof(scene: Scene) -> list[blocks.Number]:
    """What the table as a whole shows, counted."""
    rows = scene.rows.values()
    agree = sum(
        row.found.directional == row.spec.capabilities.directional
        and row.found.reach == row.spec.capabilities.unbounded
        for row in rows
    )
    blind = sum(not row.found.directional for row in rows)
    relative = sum(row.found.nature == "relative" for row in rows)
    return [
        blocks.Number(
            f"{relative}",
            _("of {n}: only the distance counts, whatever the words").format(n=len(scene.rows)),
            _("spread of the scores below 10⁻⁹"),
        ),
        blocks.Number(
            f"{blind}",
            _("of {n}: sentence A read backwards gives the same sentence vector").format(n=len(scene.rows)),
            _("only rounding is left"),
        ),
        blocks.Number(
            f"{agree} / {len(scene.rows)}",
            _("measurements that agree with what the encodings claim of direction and length"),
            _("not all: A may read the same backwards, or be longer than a threshold")
            if agree < len(scene.rows)
            else _("all"),
        ),
    ]


def notes(setting: state.Setting, scene: Scene) -> list[str]:
    found = [refusal.text(setting.lang) for refusal in scene.left_out.values()]
    ahead = [row.spec.title(setting.lang) for row in scene.rows.values() if row.spec.looks_ahead]
    found.append(
        _("{names} looks at later words whatever the mask, so no causal model can use it.").format(
            names=_(", ").join(ahead)
        )
    )
    if setting.tokens("a").ids == setting.tokens("a").ids[::-1]:
        found.append(_("Sentence A reads the same backwards: no encoding can make a difference."))
    return found


def formula(setting: state.Setting) -> None:
    """The two encodings chosen below, one under the other."""
    for name in dict.fromkeys((state.get("one"), state.get("two"))):
        st.latex(rf"\text{{{encodings.ENCODINGS[name].title.en}}}:\quad " + encodings.ENCODINGS[name].formula)


def code(setting: state.Setting) -> str:
    dims = setting.dims
    return f"""import torch
from posviz import Dims, comparison, encodings, text

torch.set_num_threads(1)
dims, tokens = Dims(d_model={dims.d_model}, n_heads={dims.n_heads}), text.tokenize({state.raw("a")!r}, {state.get("unit")!r})
values = {{}}
for name in encodings.ENCODINGS:
    try:
        values[name] = comparison.measure(encodings.make(name), dims, {setting.max_len}, tokens, seed={setting.seed})
    except ValueError as refusal:
        print(refusal)
        continue
    print(values[name], comparison.cost(encodings.make(name), dims))
"""


def downloads(setting: state.Setting, scene: Scene) -> None:
    def lines() -> list[list[object]]:
        found: list[list[object]] = [
            ["encoding", "kind", "parameters", "shift", f"spread_{ROWS}", "score_spread", "nature", "reversal", "beyond_max_len", "seconds", "times_none", "peak_bytes", "bytes_above_none", "paper"]
        ]  # fmt: skip
        for name in scene.shown:
            row = scene.rows[name]
            f = row.found
            found.append(
                [name, row.spec.kind, f.parameters, f.shift, f.spread, f.scores, f.nature, f.reversal, f.reach, row.cost.seconds, row.slower, row.cost.memory, row.more, row.spec.paper.url]
            )  # fmt: skip
        return found

    dims = setting.dims
    save.document(
        "compare",
        title=_("Which encoding does what?"),
        caption=f"d_model {dims.d_model} · H {dims.n_heads} · max_len {setting.max_len} · A {setting.tokens('a').text}",
        body=lambda: table(scene),
        table=lines,
    )
