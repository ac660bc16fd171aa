"""The one table: a row is one thing measured on both sides, or why it could not be."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

HEAD = ("what", "posviz", "other", "ratio", "wanted", "met")


@dataclass(frozen=True)
class Row:
    """posviz and other in ``unit`` ("ms", "s", "B", "fps"); ratio = posviz / other.

    most_ratio, most, least: the wanted figure, if there is one. versus: what the other side is.
    instead: said where there is no number of the other side. detail: medians and samples for the JSON file.
    """

    what: str
    unit: str
    posviz: float | None = None
    other: float | None = None
    versus: str = ""
    most_ratio: float | None = None
    most: float | None = None
    least: float | None = None
    instead: str = ""
    failure: str = ""
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.posviz / self.other if self.posviz is not None and self.other else None

    @property
    def met(self) -> bool | None:
        """None where nothing is wanted; a wanted figure that could not be measured is not met."""
        checks = [
            (self.most_ratio, self.ratio, lambda got, limit: got <= limit),
            (self.most, self.posviz, lambda got, limit: got <= limit),
            (self.least, self.posviz, lambda got, limit: got >= limit),
        ]
        wanted = [(limit, got, holds) for limit, got, holds in checks if limit is not None]
        return all(got is not None and holds(got, limit) for limit, got, holds in wanted) if wanted else None

    def cells(self) -> tuple[str, ...]:
        other = f"{_amount(self.other, self.unit)} {self.versus}".strip() if self.other is not None else self.instead
        wanted = [
            f"≤ {_times(self.most_ratio)}" if self.most_ratio is not None else "",
            f"≤ {_amount(self.most, self.unit)}" if self.most is not None else "",
            f"≥ {_amount(self.least, self.unit)}" if self.least is not None else "",
        ]
        met = {True: "yes", False: "no", None: ""}[self.met]
        ours = self.failure or _amount(self.posviz, self.unit)
        ratio = "" if self.ratio is None else _times(self.ratio)
        return self.what, ours, other, ratio, ", ".join(filter(None, wanted)), met

    def as_json(self) -> dict[str, Any]:
        names = ("what", "unit", "posviz", "other", "versus", "ratio", "most_ratio", "most", "least", "met")
        return {name: getattr(self, name) for name in (*names, "instead", "failure", "detail")}


def _times(ratio: float) -> str:
    return f"1/{1 / ratio:.3g}" if 0 < ratio < 0.4 else f"{ratio:.2f}×"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "B":
        for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if value >= size:
                return f"{value / size:.3g} {name}"
        return f"{value:.0f} B"
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def middle(samples: Iterable[float]) -> float:
    return float(median(samples))


def attempt(what: str, measure: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The rows of ``measure``; if it fails, one row that says why, and the rest of the table goes on."""
    try:
        yield from measure()
    except Exception as error:  # whatever went wrong belongs in the table
        reason = " ".join((str(error) or type(error).__name__).split())[:160].replace("|", "/")
        yield Row(what, "", failure=f"failed: {reason}", detail={"traceback": traceback.format_exc()})


def markdown(rows: Iterable[Row]) -> str:
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    texts = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join(f"| {text} |" for text in (texts[0], rule, *texts[1:]))
