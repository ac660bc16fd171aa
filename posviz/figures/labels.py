"""Text in figures: labels that differ, are drawn as they were typed, and interpreted by nobody."""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from posviz.types import Refusal, Text, Tokens, shown

SIZE = 15  # px: ticks, legends, numbers in cells
LONGEST = 14  # characters of a label on an axis; hovering shows all of it

# Plotly reads tags, $formulas$, %{fields} and entities in almost every text it draws.
_MEANT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;"})
_JOINERS = "\u200c\u200d"  # inside emoji and Indic letters; invisible, but not noise


def visible(text: str) -> str:
    """One line that can be seen: blanks alone become ␣, control characters the replacement character."""
    text = "".join(c if c.isprintable() or c in _JOINERS else "\ufffd" for c in text)
    return text if text.strip(" " + _JOINERS) else text.replace(" ", "␣")


def plain(text: Any, limit: int | None = None) -> str:
    """Any text so that Plotly draws its characters and interprets none; cut after ``limit`` of them."""
    text = visible(str(text))
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return text.translate(_MEANT)


def short(label: str) -> str:
    """A label for an axis: a long one keeps its beginning and its index (``anticonsti…·3``)."""
    label = visible(label)
    if len(label) <= LONGEST:
        return label
    head, dot, index = label.rpartition("·")
    tail = dot + index if dot and index.isdigit() else ""
    return (head if tail else label)[: LONGEST - 1 - len(tail)] + "…" + tail


def labels_of(name: str, labels: Tokens | Sequence[Any], count: int) -> tuple[str, ...]:
    """``count`` labels that differ; where some are equal, each gets its index (``我·0``)."""
    if isinstance(labels, Tokens):
        found = labels.labels
    elif isinstance(labels, str):
        raise _bad_labels(name, count, shown(repr(labels)))
    else:
        try:
            found = tuple(str(label) for label in labels)
        except TypeError:
            raise _bad_labels(name, count, shown(labels)) from None
    if len(found) != count:
        raise _bad_labels(name, count, str(len(found)))
    if Counter(map(visible, found)).most_common(1)[0][1] > 1:
        found = tuple(f"{label}·{i}" for i, label in enumerate(found))
    return found


def _bad_labels(name: str, count: int, got: str) -> Refusal:
    return Refusal(
        Text(
            "`{name}` must be a sequence of {count} labels, one for each row or column, got {got}",
            "`{name}` 必须是 {count} 个标签的序列，每行或每列一个，现在是 {got}",
        ),
        field=name,
        name=name,
        count=count,
        got=got,
    )


def text_width(text: str, size: float = SIZE) -> float:
    """About how many pixels wide a text is drawn."""
    wide = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text)
    return wide * size


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of about ``width`` pixels, broken at blanks (inside a word that is wider); each :func:`plain`."""
    lines: list[str] = []
    for word in visible(text).split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
            continue
        lines.append("")
        for character in word:
            if text_width(lines[-1] + character, size) > width:
                lines.append("")
            lines[-1] += character
    return [plain(line) for line in lines]


def number(value: float, decimals: int, *, sign: bool = False) -> str:
    """A number with a true minus; what rounds to zero has no sign."""
    text = f"{abs(value):.{decimals}f}"
    if not float(text):
        return text
    return ("−" if value < 0 else "+" if sign else "") + text


def decimals_for(limit: float) -> int:
    """Decimals that show three digits of a value near ``limit``."""
    return min(6, max(0, 2 - math.floor(math.log10(limit))))
