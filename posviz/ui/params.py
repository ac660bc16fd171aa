"""Every parameter of the URL: its name, its default, and what its text means; in one place, refused by one sentence."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from posviz import encodings, text
from posviz.attention import MASKS, MAX_SEED
from posviz.encodings import Knob
from posviz.models.surgery import CHANGES, Operation
from posviz.models.twins.corpus import FORMS
from posviz.myths import MYTHS, VERDICTS
from posviz.precision import DTYPES, ROUNDED
from posviz.similarity import KINDS
from posviz.survey import AGGREGATES, SCORES
from posviz.types import (
    LANGUAGES,
    MAX_D_MODEL,
    MAX_HEADS,
    MAX_LEN,
    Refusal,
    Text,
    real_number,
    shown,
    whole_number,
)
from posviz.ui import models
from posviz.ui.lang import current

WATCH = ("one", "two", "base", "digits", "pairing")  # what moves on the Rotation page
ROPE_VIEWS = ("ratio", "waves", "angles", "kernel", "needle")
LONGEST_TEXT = 2**24  # positions on the RoPE workbench
PRECISIONS = ("float32", "float64")  # attention; the pictures know narrower ones: precision.DTYPES
JS_SAFE = 2**53 - 1  # whole numbers a browser's number box can hold


def read_int(name: str, raw: str, low: int, high: int) -> int:
    """A whole number from low to high, or a :class:`Refusal` (also for 1_0 or ٣, which Python would take)."""
    digits = raw.strip().removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 300
    return whole_number(name, int(raw) if plain else raw, low, high)


def read_float(name: str, raw: str, low: float, high: float, *, above: bool = False) -> float:
    """A number such as 10000 or 1e4 in its range, or a :class:`Refusal` (also for nan, inf and 1_0)."""
    try:
        value = float(raw) if raw.isascii() and "_" not in raw else raw
    except ValueError:
        value = raw
    return real_number(name, value, low, high, above=above)


def read_base(name: str, raw: str) -> float:
    return read_float(name, raw, 1.0, 1e12, above=True)


def read_bool(name: str, raw: str) -> bool:
    return _one_of(name, raw, ("on", "off")) == "on"


def _one_of(name: str, raw: str, allowed: tuple[str, ...]) -> str:
    if raw not in allowed:
        raise Refusal(
            Text("`{name}` must be one of {allowed}, got {got}", "`{name}` 只能是 {allowed} 之一，现在是 {got}"),
            field=name,
            name=name,
            allowed=", ".join(filter(None, allowed)),  # "" stands for "not given"
            got=shown(raw.strip()) or "“”",
        )
    return raw


def write(value: Any) -> str:
    """A value as the URL writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Param:
    """One URL parameter: its name, its text when the URL has none, and how the text is read."""

    name: str
    default: str
    read: Callable[[str, str], Any]


def choice(name: str, default: str, allowed: tuple[str, ...]) -> Param:
    return Param(name, default, lambda n, raw: _one_of(n, raw, allowed))


def _limited(low: int, high: int) -> Callable[[str, str], int]:
    return lambda name, raw: read_int(name, raw, low, high)


def _optional(name: str, raw: str) -> int | None:
    """A whole number, or None where the URL leaves it out and the page chooses."""
    return read_int(name, raw, 0, 2 * MAX_LEN) if raw else None


def _position(name: str, raw: str) -> int | None:
    """The same for a position, which a real model may have many of."""
    return read_int(name, raw, 0, LONGEST_TEXT) if raw else None


def _layer(name: str, raw: str) -> str:
    """A layer type such as full_attention, or "" where the page chooses."""
    if raw and not (len(raw) <= 40 and raw.isascii() and raw.replace("_", "").isalnum()):
        raise Refusal(
            Text(
                "`{name}` must be a layer type such as full_attention, got {got}",
                "`{name}` 应是层的类型，例如 full_attention，现在是 {got}",
            ),
            field=name,
            name=name,
            got=shown(raw),
        )
    return raw


def _named(name: str, raw: str) -> str:
    """The name of something that the page looks for, or "" where the page chooses."""
    if len(raw) > 200 or not raw.isprintable():
        raise Refusal(
            Text(
                "`{name}` must be a name of up to 200 characters, got {got}",
                "`{name}` 应是不超过 200 个字符的名称，现在是 {got}",
            ),
            field=name,
            name=name,
            got=shown(raw),
        )
    return raw


def _cell(name: str, raw: str) -> tuple[str, int, int, int] | None:
    """A cell of the attention page, "a.0.1.2": sentence (a, b, or d for the difference), head, query, key."""
    if not raw:
        return None
    side, *places = raw.split(".")
    _one_of(name, side, ("a", "b", "d"))
    if len(places) != 3:
        raise Refusal(
            Text(
                "`{name}` must be a sentence, head, query and key such as a.0.1.2, got {got}",
                "`{name}` 应是句子、头、查询、键，例如 a.0.1.2，现在是 {got}",
            ),
            field=name,
            name=name,
            got=shown(raw),
        )
    h, i, j = (read_int(name, place, 0, MAX_LEN) for place in places)
    return side, h, i, j


# The shared ones, then those of single pages.
PARAMS: dict[str, Param] = {
    p.name: p
    for p in (
        Param("a", "我爱你", lambda name, raw: raw),
        Param("b", "你爱我", lambda name, raw: raw),
        choice("unit", "character", text.UNITS),
        choice("encoding", "sinusoidal", tuple(encodings.ENCODINGS)),
        Param("d_model", "64", _limited(1, MAX_D_MODEL)),
        Param("heads", "4", _limited(1, MAX_HEADS)),
        Param("max_len", "128", _limited(1, MAX_LEN)),
        Param("base", "10000", read_base),
        Param("seed", "0", _limited(0, MAX_SEED)),
        choice("mask", "none", MASKS),
        choice("precision", "float32", PRECISIONS),
        Param("lang", "", lambda name, raw: _one_of(name, raw, LANGUAGES) if raw else current()),
        # pages
        choice("view", "", ("", *dict.fromkeys(view for cls in encodings.ENCODINGS.values() for view in cls.pictures))),
        choice("compare", "off", ("off", "on", "trained")),
        Param("base2", "100", read_base),
        Param("d_model2", "", _optional),
        Param("heads2", "", _optional),
        Param("head", "", _optional),
        choice("kind", "cosine", KINDS),
        Param("p", "", _optional),
        Param("with", "sinusoidal,learned,rope,alibi", lambda name, raw: _encoding_list(name, raw)),
        Param("k", "5", _limited(0, MAX_LEN - 1)),
        choice("watch", "one", WATCH),
        Param("m", "", _position),
        Param("n", "", _position),
        Param("qi", "", _optional),
        Param("ki", "", _optional),
        Param("pair", "", _optional),
        Param("notch", "", _optional),
        choice("rounded", "positions", ROUNDED),
        Param("cell", "", _cell),
        choice("model", "", ("", "twin", "untrained")),  # "": the twin of the encoding, if it has one
        Param("layer", "1", _limited(1, 12)),
        Param("smodel", "", lambda name, raw: raw),  # "": the twin of the encoding
        choice("sspecial", "shown", ("shown", "hidden", "renormalised")),
        choice("spart", "self", ("self", "decoder", "cross")),
        Param("slayer", "", lambda name, raw: read_int(name, raw, 1, 200) if raw else None),
        Param("shead", "", _optional),
        # behind the head: the browser goes back one change at a time, and from an opened head first to the grid
        choice("sview", "grid", ("grid", "head", "lines", "weight", "steps", "all")),
        choice("sside", "a", ("a", "b", "d")),
        choice("smeasure", "", ("", *SCORES)),
        choice("ssorted", "off", ("off", "on")),
        choice("sown", "off", ("off", "on")),
        Param("scell", "", lambda name, raw: _place(name, raw)),
        Param("sstep", "1", _limited(1, 9)),
        Param("sfrom", "0", lambda name, raw: read_float(name, raw, 0.0, 0.5)),
        Param("stop", "0", lambda name, raw: int(_one_of(name, raw, ("0", "1", "3", "5")))),
        Param("slines", "", lambda name, raw: _line_ends(name, raw)),
        choice("sgather", "mean", AGGREGATES),
        Param("slayers", "", lambda name, raw: _numbers(name, raw)),
        Param("sheads", "", lambda name, raw: _numbers(name, raw)),
        Param("op", "", lambda name, raw: _operation(name, raw)),  # "": the first that the model has
        choice("stage", "after", ("before", "after", "change")),
        Param("opening", "春", lambda name, raw: raw),
        choice("form", "quatrain", FORMS),
        Param("temperature", "0.8", lambda name, raw: read_float(name, raw, 0.0, 5.0)),
        Param("dice", "0", _limited(0, MAX_SEED)),
        Param("row", "", _optional),
        Param("col", "", _optional),
        choice("enters", "all", ("all", "none", "additive", "rotary", "bias")),
        choice("sort", "registry", ("registry", "name", "parameters", "time", "memory", "reversal", "spread")),
        choice("one", "sinusoidal", tuple(encodings.ENCODINGS)),
        choice("two", "rope", tuple(encodings.ENCODINGS)),
        choice("pair_view", "look", ("look", "similarity", "rotation", "order", "attention")),
        Param("guesses", "", lambda name, raw: _guesses(name, raw)),
        choice("digits", "float64", DTYPES),
        choice("need", "short", ("short", "long", "extrapolate", "relative")),
        Param("table", "", _named),
        Param("beside", "", _named),  # the table beside an encoding: "": its trained twin, if it has one
        choice("tview", "rows", ("rows", "alike")),
        Param("trows", "", lambda name, raw: read_int(name, raw, 2, MAX_LEN) if raw else None),
        Param("ra", "qwen2.5-7b", models.read),
        Param("rb", "qwen2.5-7b-yarn", models.read_optional),
        Param("rlen", "", lambda name, raw: read_int(name, raw, 2, LONGEST_TEXT) if raw else None),
        Param("rlayer", "", _layer),
        choice("rview", "ratio", ROPE_VIEWS),
        Param("cq", "", lambda name, raw: raw),
        Param("ca", "", lambda name, raw: raw),
        Param("cp", "3", _limited(0, 2**31 - 1)),
        Param("cm", "none", models.read_optional),
    )
}


def _encoding_list(name: str, raw: str) -> tuple[str, ...]:
    drawn = tuple(key for key, cls in encodings.ENCODINGS.items() if cls.kind != "none")
    return tuple(_one_of(name, part, drawn) for part in dict.fromkeys(raw.split(",")) if part)


def _operation(name: str, raw: str) -> Operation | None:
    """What the surgery page does to the positions, "shift.100": a change and its number."""
    if not raw:
        return None
    change, dot, amount = raw.partition(".")
    _one_of(name, change, tuple(CHANGES))
    return Operation(change, read_int(f"{name} {change}", amount, 0, CHANGES[change].high) if dot else None)


def _numbers(name: str, raw: str) -> tuple[str, ...]:
    """A list of whole numbers, "1,3", each as its text."""
    return tuple(dict.fromkeys(str(read_int(name, part, 0, 999)) for part in raw.split(",") if part))


def _place(name: str, raw: str) -> tuple[str, int, int] | None:
    """A weight of the studio, "a.1.2": sentence, query, key."""
    if not raw:
        return None
    side, *places = raw.split(".")
    if side not in ("a", "b") or len(places) != 2:
        raise Refusal(
            Text(
                "`{name}` must be a sentence, query and key such as a.1.2, got {got}",
                "`{name}` 应是句子、查询、键，例如 a.1.2，现在是 {got}",
            ),
            field=name,
            name=name,
            got=shown(raw),
        )
    i, j = (read_int(name, place, 0, MAX_LEN) for place in places)
    return side, i, j


def _line_ends(name: str, raw: str) -> dict[str, list[int]]:
    """Chosen tokens of the studio's lines, "a3.bk0": query 3 of A, key 0 of B."""
    found: dict[str, list[int]] = {"a": [], "b": [], "ak": [], "bk": []}
    for part in filter(None, raw.split(".")):
        group = part.rstrip("0123456789")
        if group not in found:
            raise Refusal(
                Text(
                    "`{name}` must be queries and keys such as a3.bk0, got {got}",
                    "`{name}` 应是查询和键，例如 a3.bk0，现在是 {got}",
                ),
                field=name,
                name=name,
                got=shown(raw),
            )
        found[group].append(read_int(name, part.removeprefix(group), 0, MAX_LEN))
    return found


def _guesses(name: str, raw: str) -> dict[str, str]:
    """The predictions of the Myths page, "falls:false,alibi:shown": myth -> verdict, or that it is only shown."""
    found = {}
    for part in filter(None, raw.split(",")):
        key, _colon, guess = part.partition(":")
        found[_one_of(name, key, tuple(MYTHS))] = _one_of(name, guess, (*VERDICTS, "shown"))
    return found


def knobs(name: str) -> dict[str, tuple[Knob, Any]]:
    """The parameters of an encoding that have a control of their own: field -> (knob, default)."""
    found = {}
    for item in fields(encodings.ENCODINGS[name]):
        control = item.metadata.get("knob")
        if control is not None and not control.shared:
            found[item.name] = (control, item.default)
    return found


def knob_param(name: str, item: str) -> Param:
    """The URL parameter of an encoding's own parameter: ``rope_pairing``."""
    control, default = knobs(name)[item]

    def read(label: str, raw: str) -> Any:
        if control.choices:
            return _one_of(label, raw, control.choices)
        if isinstance(default, bool):
            return read_bool(label, raw)
        if isinstance(default, int):
            return read_int(label, raw, int(control.low), int(control.high))
        return read_float(label, raw, control.low, control.high, above=control.above)

    return Param(f"{name}_{item}", write(default), read)


def active() -> list[Param]:
    """All parameters: the named ones and every encoding's own, so that none is lost or ignored."""
    return [*PARAMS.values(), *KNOBS.values()]


# Every encoding's own parameters by their name in the URL.
KNOBS: dict[str, Param] = {
    param.name: param for name in encodings.ENCODINGS for item in knobs(name) for param in [knob_param(name, item)]
}


def find(name: str) -> Param:
    """A parameter by its name in the URL."""
    return PARAMS[name] if name in PARAMS else KNOBS[name]
