"""Chinese is complete and equal: the catalogue holds what the code shows, and nothing else."""

import ast
import dataclasses
import importlib
import io
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import posviz.ui.canvas
from posviz import encodings
from posviz.types import Dims, Text

ROOT = Path(__file__).parents[1]
PO = ROOT / "posviz/ui/locale/zh/LC_MESSAGES/posviz.po"
# What stays as it is in Chinese: functions of mathematics, names in formulas.
NAMES = {"cos", "sin", "sim"}

HAN = "[\u3400-\u9fff]"
WIDE = "[，。：；？！、（）“”]"
# What a message may not contain, and why.
WRONG = {
    "ASCII punctuation beside Chinese": rf"{HAN} ?[,.:;?!]|[,.:;?!] ?{HAN}",
    "a space beside full-width punctuation": rf" {WIDE}|{WIDE} ",
    "a space between Chinese characters": rf"{HAN} +{HAN}",
    "no space between Chinese and Latin, digits or a value": rf"{HAN}[A-Za-z0-9{{]|[A-Za-z0-9}}]{HAN}",
    "a space too many": r"^ | $|  ",
}


def sources() -> Iterator[Path]:
    """What ``make messages`` reads."""
    yield ROOT / "app.py"
    for folder in ("pages", "posviz/ui"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def extracted(paths) -> set[str]:
    """The messages that Babel finds, as ``make messages`` does."""
    found = set()
    for path in paths:
        with path.open("rb") as file:
            found |= {message for _, message, _, _ in extract("python", file, DEFAULT_KEYWORDS)}
    return found


def marked(path: Path) -> set[str]:
    """The texts that the code itself marks, also where Babel does not look (in an f-string)."""
    return {
        call.args[0].value
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("_", "N_")
        and isinstance(call.args[0], ast.Constant)
    }


def catalogue(path: Path = PO) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale="zh")


def values(template: str) -> list[str]:
    """The values of a template, sorted: their order in a sentence is free."""
    return sorted(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def prose(text: str) -> set[str]:
    """The English words of a text that need a translation."""
    return set(re.findall("[A-Za-z]{2,}", re.sub(r"\{.*?\}", "", text))) - NAMES


def wrong(chinese: str) -> list[str]:
    return [why for why, pattern in WRONG.items() if re.search(pattern, chinese)]


def faults(catalog: Catalog, messages: set[str]) -> list[str]:
    """Everything that makes the Chinese unequal to the English, in one list."""
    found = [f"missing: {message}" for message in sorted(messages - {entry.id for entry in catalog})]
    found += [f"obsolete: {message}" for message in catalog.obsolete]
    for entry in catalog:
        if not entry.id:
            continue
        said = str(entry.string)
        problems = []
        if entry.id not in messages:
            problems.append("unused")
        if entry.fuzzy:
            problems.append("fuzzy")
        if not said:
            problems.append("untranslated")
        elif prose(entry.id) and not re.search(HAN, said):
            problems.append("not Chinese")
        if said and values(entry.id) != values(said):
            problems.append("other values")
        found += [f"{problem}: {entry.id}" for problem in problems + wrong(said)]
    return found


def test_catalogue_is_complete() -> None:
    assert faults(catalogue(), extracted(sources())) == []


def test_babel_finds_every_marked_text() -> None:
    """On Python 3.11 it overlooks what stands inside an f-string."""
    for path in sources():
        assert marked(path) - extracted([path]) == set(), path


def test_every_label_of_a_canvas_is_marked() -> None:
    messages = extracted(sources())
    seen = 0
    for module in pkgutil.iter_modules(posviz.ui.canvas.__path__, "posviz.ui.canvas."):
        texts = getattr(importlib.import_module(module.name), "LABELS", {})
        assert set(texts.values()) <= messages, module.name
        seen += bool(texts)
    assert seen >= 5


def test_compiled_catalogue_is_this_one() -> None:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue())
    assert PO.with_suffix(".mo").read_bytes() == buffer.getvalue(), "run `make messages`"


def texts_of(cls) -> Iterator[Text]:
    """What an encoding says of itself: its name, its sentence, its parameters, its measured claims."""
    yield from (cls.title, cls.summary)
    for field in dataclasses.fields(cls):
        knob = field.metadata.get("knob")
        if knob:
            yield from (knob.label, knob.help, *knob.names)
    spec = cls()
    for claim in spec.claims(spec.build(Dims(d_model=16, n_heads=2), 16), 16):
        yield from (claim.label, claim.expected)


@pytest.mark.parametrize("name", list(encodings.ENCODINGS))
def test_encodings_speak_chinese(name: str) -> None:
    for text in texts_of(encodings.ENCODINGS[name]):
        # A name, a formula or a number is the same in both languages.
        assert re.search(HAN, text.zh) or (text.zh == text.en and len(text.en.split()) <= 5), text
        assert values(text.en) == values(text.zh), text
        assert wrong(text.zh) == [], text


@pytest.mark.parametrize("name", list(encodings.ENCODINGS))
def test_descriptions_are_well_set(name: str) -> None:
    spec = encodings.make(name)
    assert wrong(spec.describe("zh").removesuffix(str(spec.paper))) == []


PLANTED = [
    ("", [], "untranslated"),
    ("Position {row}", [], "not Chinese"),
    ("位置 {col}", [], "other values"),
    ("位置", [], "other values"),
    ("位置 {row}", ["fuzzy"], "fuzzy"),
    ("位置: {row}", [], "ASCII punctuation beside Chinese"),
    ("位置,第 {row} 行", [], "ASCII punctuation beside Chinese"),
    ("位置 ：{row}", [], "a space beside full-width punctuation"),
    ("位 置 {row}", [], "a space between Chinese characters"),
    ("位置{row}", [], "no space between Chinese and Latin, digits or a value"),
    ("位置 {row} ", [], "a space too many"),
    ("位置 {row}", [], None),
    ("第 {row} 个位置（从 0 数起）", [], None),
]


@pytest.mark.parametrize(("said", "flags", "fault"), PLANTED)
def test_the_checker_sees(said: str, flags: list[str], fault: str | None) -> None:
    catalog = Catalog(locale="zh")
    catalog.add("Position {row}", said, flags=flags)
    assert faults(catalog, {"Position {row}"}) == ([f"{fault}: Position {{row}}"] if fault else [])


def test_the_checker_sees_what_is_missing_or_left_over(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text('title(_("A new title"))\nTITLES = {"x": N_("a name")}\n', "utf-8")
    catalog = Catalog(locale="zh")
    catalog.add("a name", "名称")
    catalog.add("an old name", "旧名称")
    assert faults(catalog, extracted([page])) == ["missing: A new title", "unused: an old name"]
    page.write_text("""show(f"<p>{_('inside')}</p>")\n""", "utf-8")
    assert marked(page) == {"inside"}
