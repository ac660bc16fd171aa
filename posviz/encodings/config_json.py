"""The text of a config.json as a JSON object: of bounded size and depth, with nothing in it that is not JSON."""

import json
from collections.abc import Mapping
from typing import Any

from posviz.types import Refusal, Text, shown

MAX_BYTES = 1_000_000
MAX_DEPTH = 20


def read_config(text: str | bytes) -> dict[str, Any]:
    """The JSON object in a file's text; refused when too large or deep, or not JSON (NaN is not)."""
    if len(text) > MAX_BYTES:
        raise Refusal(
            Text(
                "the file has {size:,} bytes; a config.json of up to {limit:,} is read",
                "文件有 {size:,} 字节；最多读 {limit:,} 字节的 config.json",
            ),
            field="config",
            size=len(text),
            limit=MAX_BYTES,
        )
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        config = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise Refusal(Text("the file is not text in UTF-8", "文件不是 UTF-8 编码的文本"), field="config") from None
    except json.JSONDecodeError as error:
        raise Refusal(
            Text(
                "the text is not JSON: line {line}, column {column} cannot be read",
                "文本不是 JSON：第 {line} 行第 {column} 列读不懂",
            ),
            field="config",
            line=error.lineno,
            column=error.colno,
        ) from None
    except Refusal:
        raise
    except ValueError:  # a whole number of thousands of digits
        raise Refusal(
            Text("the text holds a number that is too long", "文本里有一个过长的数"), field="config"
        ) from None
    check_object("config", config)
    check_depth(config)
    try:  # "\ud800" is JSON, but no text that a page or a link can carry
        json.dumps(config, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(
            Text("the text holds half of a surrogate pair, which is no character", "文本里有半个代理对，它不是字符"),
            field="config",
        ) from None
    return config


def _no_number(name: str) -> None:
    raise Refusal(
        Text("the text holds {got}, which is not a number in JSON", "文本里有 {got}，它不是 JSON 里的数"),
        field="config",
        got=name,
    )


def _too_deep() -> Refusal:
    return Refusal(
        Text("the text is nested more than {limit} levels deep", "文本嵌套超过了 {limit} 层"),
        field="config",
        limit=MAX_DEPTH,
    )


def check_depth(config: Any) -> None:
    """Refuse what is nested more than MAX_DEPTH levels deep."""
    level = [config]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, Mapping) else node)
            if isinstance(child, Mapping | list)
        ]
        if not level:
            return
    raise _too_deep()


def check_object(name: str, value: Any) -> Mapping[str, Any]:
    """The value, or a refusal that names it where it is no object."""
    if not isinstance(value, Mapping):
        raise Refusal(
            Text("`{name}` must be a JSON object, got {got}", "`{name}` 必须是 JSON 对象，现在是 {got}"),
            field=name,
            name=name,
            got=shown(value),
        )
    return value
