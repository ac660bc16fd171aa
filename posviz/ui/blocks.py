"""Small pieces of HTML: header, token strip, numbers, refusals. All text is escaped here."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from posviz.text import visible
from posviz.types import Tokens
from posviz.ui.lang import _

CSS = Path(__file__).with_name("app.css")
STRIP_LIMIT = 40  # tokens of a sentence in the strip; the pictures show all


def style() -> None:
    """The few rules that Streamlit's theme cannot express."""
    st.html(CSS)


def title(question: str) -> None:
    st.html(f'<h1 class="pv-title">{escape(question)}</h1>')


def claim(sentence: str, *, width: str = "stretch") -> None:
    st.html(f'<p class="pv-claim">{escape(sentence)}</p>', width=width)


def strip(a: Tokens, b: Tokens, places: tuple[Sequence[object], Sequence[object]] | None = None) -> None:
    """Both sentences as tokens with their positions: the audience's anchor. places: other positions than 0, 1, 2 ..."""
    told = places or (range(len(a)), range(len(b)))
    st.html(f'<div class="pv-strip">{_row(a, "a", told[0])}{_row(b, "b", told[1])}</div>', width="content")


def _row(tokens: Tokens, side: str, places: Sequence[object]) -> str:
    cells = [
        f'<span class="pv-token{" pv-special" if special else ""}" title="{escape(hint)}"><bdi>{escape(visible(piece))}</bdi><sub>{escape(str(place))}</sub></span>'
        for place, piece, hint, special in zip(places, tokens.pieces, _hints(tokens), tokens.special, strict=True)
    ][:STRIP_LIMIT]
    more = len(tokens) - len(cells)
    if more > 0:
        cells.append(f'<span class="pv-more">+{more}</span>')
    hint = _("type a sentence in the sidebar")  # not inside the f-string: Babel on Python 3.11 would miss it
    body = "".join(cells) or f'<span class="pv-more">{escape(hint)}</span>'
    return f'<div class="pv-{side}"><b>{side.upper()}</b>{body}</div>'


def _hints(tokens: Tokens) -> list[str]:
    """What the pointer shows of each token: its label; of a model's own pieces also how it writes them, and the bytes."""
    if tokens.unit != "piece":
        return list(tokens.labels)
    return [
        f"{label} · {info.written} · {info.raw.hex(' ').upper()}" if info.raw else f"{label} · {info.written}"
        for label, info in zip(tokens.labels, tokens.infos, strict=True)
    ]


class Number(NamedTuple):
    """A large number: its text, what it measures, what it should be, and whether it is (None: no claim)."""

    value: str
    caption: str
    expected: str = ""
    holds: bool | None = None


def numbers(items: Sequence[Number]) -> None:
    st.html(numbers_html(items))


def numbers_html(items: Sequence[Number]) -> str:
    cells = []
    for item in items:
        mark = {True: " pv-holds", False: " pv-fails", None: ""}[item.holds]
        cells.append(
            f'<div class="pv-number{mark}"><div><strong>{escape(item.value)}</strong>'
            f"<span>{escape(item.expected)}</span></div><p>{escape(item.caption)}</p></div>"
        )
    return f'<div class="pv-numbers">{"".join(cells)}</div>'


def refusal(sentence: str) -> None:
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(sentence))  # after escaping: only our own tags
    st.html(f'<div class="pv-refusal" role="alert">{marked}</div>')


def note(sentence: str) -> None:
    """One quiet line under a picture."""
    st.html(f'<p class="pv-note">{escape(sentence)}</p>')


def caption(text: str) -> None:
    """A quiet heading, as tables have."""
    st.html(f'<p class="pv-caption">{escape(text)}</p>')


def label(text: str) -> None:
    """A few words beside a control, no wider than they are."""
    st.html(f'<p class="pv-note">{escape(text)}</p>', width="content")


def badge(sentence: str) -> None:
    st.html(f'<p class="pv-badge">{escape(sentence)}</p>')


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, remark: str = "") -> None:
    """A small table of numbers, what it means beside it; the first column names the row."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(c)}</td>" for c in row[1:])}</tr>'
        for row in rows
    )
    st.html(
        f'<div class="pv-beside"><table class="pv-table"><caption>{escape(caption)}</caption>'
        f'<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table><p class="pv-note">{escape(remark)}</p></div>'
    )


def findings(items: Sequence[tuple[str, str, bool]]) -> None:
    """Sentences about a side: (side, sentence, worth a check)."""
    rows = "".join(
        f'<div role="listitem" class="pv-{side.lower()}{" pv-odd" if odd else ""}">'
        f"<b>{escape(side)}</b><span>{escape(sentence)}</span></div>"
        for side, sentence, odd in items
    )
    st.html(f'<div role="list" class="pv-findings">{rows}</div>')


def compact(x: float, digits: int = 3) -> str:
    """1.2×10⁻⁷, 0.45, 31.5: a number as it is set large."""
    if isinstance(x, int):
        return f"{x:,}".replace("-", "−")
    if x != x:
        return "–"
    if x == 0:
        return "0"
    size = abs(x)
    sign = "−" if x < 0 else ""
    if 1e3 <= size < 1e7:
        return sign + f"{size:,.0f}"
    if not 1e-3 <= size < 1e7:
        mantissa, exponent = f"{size:.1e}".split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{sign}{mantissa}×10{power}"
    return sign + f"{size:#.{digits}g}".rstrip(".")
