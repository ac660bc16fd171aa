"""``python -m posviz encodings``: the registry, as a table for the terminal or as docs/encodings.md."""

import argparse
import sys
import unicodedata
from collections.abc import Sequence

import posviz
from posviz.encodings import ENCODINGS, Encoding
from posviz.types import LANGUAGES, Text

KINDS = {
    "none": Text("nowhere", "无"),
    "additive": Text("embedding", "词嵌入"),
    "rotary": Text("query and key", "查询和键"),
    "bias": Text("score", "分数"),
}
HEAD = (
    Text("key", "名称"),
    Text("encoding", "编码"),
    Text("enters at", "加在哪里"),
    Text("trainable", "可训练"),
    Text("only the distance counts", "只看距离"),
    Text("tells before from after", "分前后"),
    Text("beyond max_len", "超过 max_len"),
    Text("depends on content", "看内容"),
    Text("paper", "论文"),
)
YES, NO = Text("yes", "是"), Text("no", "否")
TITLE = Text("The position encodings of posviz", "posviz 的位置编码")
MADE = Text(
    "Made by `python -m posviz encodings --markdown`; a test compares it with the registry.",
    "由 `python -m posviz encodings --markdown --lang zh` 生成；测试会与注册表对照。",
)
PARAMETER = (Text("parameter", "参数"), Text("default", "默认值"), Text("allowed", "允许"), Text("meaning", "含义"))


def line(name: str, cls: type[Encoding], lang: str) -> tuple[str, ...]:
    """One encoding as the cells of the table."""
    traits = cls.capabilities
    flags = (traits.trainable, traits.relative, traits.directional, traits.unbounded, traits.content)
    marks = ((YES if flag else NO)(lang) for flag in flags)
    return name, cls.title(lang), KINDS[cls.kind](lang), *marks, f"{cls.paper.authors} {cls.paper.year}"


def table(lang: str) -> str:
    """The registry in columns; a Chinese character is two cells wide."""
    lines = [tuple(cell(lang) for cell in HEAD), *(line(name, cls, lang) for name, cls in ENCODINGS.items())]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)) for row in lines)
    return "\n".join(row.rstrip() for row in padded)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def markdown(lang: str) -> str:
    """docs/encodings.md: the table, then a section for each encoding."""
    head = [cell(lang) for cell in HEAD]
    rows = [head, ["---"] * len(head)]
    rows += [[f"[`{cells[0]}`](#{cells[0]})", *cells[1:]] for cells in (line(n, c, lang) for n, c in ENCODINGS.items())]
    parts = [f"# {TITLE(lang)}", MADE(lang), "\n".join(f"| {' | '.join(row)} |" for row in rows)]
    return "\n\n".join([*parts, *(section(cls, lang) for cls in ENCODINGS.values())]) + "\n"


def section(cls: type[Encoding], lang: str) -> str:
    """What an encoding says of itself: summary, formula, paper, models, parameters."""
    spec = cls()
    parts = [f"## {spec.name}", f"**{cls.title(lang)}**", cls.summary(lang), f"$${cls.formula}$$"]
    if cls.capabilities.trainable:
        parts.append(cls.starts(lang))
    parts.append(f"[{cls.paper}]({cls.paper.url})")
    if cls.used_by:
        models = ", ".join(f"[{model.name}]({model.url})" for model in cls.used_by)
        parts.append(Text("Used by: {models}", "用它的模型：{models}")(lang, models=models))
    knobs = {name: spec.__dataclass_fields__[name].metadata["knob"] for name in spec.parameters()}
    if knobs:
        rows = [[cell(lang) for cell in PARAMETER], ["---"] * len(PARAMETER)]
        for name, control in knobs.items():
            default = spec.parameters()[name]
            allowed = ", ".join(control.choices) if control.choices else f"{control.low:g} … {control.high:g}"
            allowed = "True, False" if isinstance(default, bool) else allowed
            rows.append([f"`{name}`", f"`{default!r}`", allowed, control.help(lang)])
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return "\n\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m posviz", description=posviz.__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("encodings", help="print the registry of position encodings")
    listing.add_argument("--lang", choices=LANGUAGES, default="en")
    listing.add_argument("--markdown", action="store_true", help="print docs/encodings.md")
    options = parser.parse_args(arguments)
    print(markdown(options.lang) if options.markdown else table(options.lang), end="" if options.markdown else "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
