"""Numbers that a person pastes or uploads: printed tensors, .npy, .safetensors. Read, never executed."""

import re
from typing import Any

import numpy as np

from posviz import files
from posviz.types import Refusal, Text, shown

MAX_BYTES = 4_000_000
MAX_NUMBERS = 200_000
MAX_DIMS = 4
# What a printed tensor or array is wrapped in: "tensor([...], dtype=torch.float64)". Possessive: text is read once.
_WRAP = re.compile(r"\s*+(?:\w++\.)*+(?:tensor|array|Tensor|Array)\(")
_OPTION = re.compile(r"\s*+\w++=[\w.:'\"()]++")
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+"
_TOKEN = re.compile(rf"[\s,;]+|([\[\](){{}}])|({_NUMBER})(?![\w.])|(.)", re.S)


def _refuse(en: str, zh: str, **values: Any) -> Refusal:
    return Refusal(Text(en, zh), field="vectors", **values)


def parse(text: str) -> np.ndarray:
    """Printed numbers as a float64 array: JSON lists, a printed tensor, or rows of plain numbers.

    Without brackets every line is a row. Refused: anything that is not a number, rows of unequal length,
    shortened output ("..."), more than MAX_NUMBERS numbers.
    """
    files.check_size(text, MAX_BYTES)
    body = _unwrapped(text)
    if not body.strip():
        raise _refuse("there are no numbers", "没有数")
    if "..." in body or "…" in body:
        raise _refuse(
            "the numbers were shortened when printed (…): print all of them, "
            "for example with torch.set_printoptions(profile='full')",
            "打印时省略了一部分数（…）：请全部打印出来，例如先用 torch.set_printoptions(profile='full')",
        )
    if any(bracket in body for bracket in "[](){}"):
        rows = _bracketed(body)
    else:
        rows = [_numbers(line) for line in body.splitlines() if line.strip()]
        rows = rows[0] if len(rows) == 1 else rows
    return check(_array(rows))


def _unwrapped(text: str) -> str:
    """What stands in "tensor(...)" without its options, or the text itself."""
    wrapped, end = _WRAP.match(text), len(text.rstrip()) - 1
    if not wrapped or text[end] != ")":
        return text
    start = wrapped.end()
    end = len(text[:end].rstrip())
    comma = text.rfind(",", start, end)
    while comma >= 0 and _OPTION.fullmatch(text, comma + 1, end):
        end, comma = comma, text.rfind(",", start, comma)
    return text[start:end]


def _tokens(text: str):
    """Brackets as text and numbers as floats; anything else is refused with its place."""
    for found in _TOKEN.finditer(text):
        bracket, number, other = found.groups()
        if other is not None:
            raise _refuse(
                "`{got}` at character {at} is not a number",
                "第 {at} 个字符处的 `{got}` 不是数",
                got=shown(text[found.start() : found.start() + 12]),
                at=found.start() + 1,
            )
        if bracket:
            yield bracket
        elif number:
            yield float(number)


def _numbers(line: str) -> list[float]:
    return [token for token in _tokens(line) if isinstance(token, float)]


def _bracketed(text: str) -> list[Any]:
    """Nested lists from brackets of any kind; commas and spaces separate."""
    root: list[Any] = []
    stack = [root]
    for token in _tokens(text):
        if isinstance(token, float):
            stack[-1].append(token)
        elif token in "[({":
            if len(stack) > MAX_DIMS + 1:
                raise _refuse("the numbers are nested more than {n} deep", "数的嵌套超过了 {n} 层", n=MAX_DIMS)
            stack[-1].append([])
            stack.append(stack[-1][-1])
        elif len(stack) == 1:
            raise _refuse("a bracket is closed that was never opened", "有一个括号没有开头")
        else:
            stack.pop()
    if len(stack) > 1:
        raise _refuse("a bracket is not closed", "有一个括号没有关上")
    return root[0] if len(root) == 1 and isinstance(root[0], list) else root


def _array(rows: list[Any]) -> np.ndarray:
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        raise _refuse("the rows do not all have the same length", "各行的长度不一样") from None


def check(array: np.ndarray) -> np.ndarray:
    """A float64 array of finite numbers with 1 to MAX_DIMS axes; refused otherwise."""
    if not 1 <= array.ndim <= MAX_DIMS or not array.size:
        raise _refuse(
            "vectors have 1 to {n} axes, got the shape {got}",
            "向量应有 1 到 {n} 个轴，现在的形状是 {got}",
            n=MAX_DIMS,
            got=str(array.shape),
        )
    if array.size > MAX_NUMBERS:
        raise _refuse(
            "there are {size:,} numbers; up to {limit:,} are read",
            "有 {size:,} 个数；最多读 {limit:,} 个",
            size=array.size,
            limit=MAX_NUMBERS,
        )
    array = np.asarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise _refuse("the numbers must be finite", "数必须是有限的")
    return array


def load(data: bytes) -> np.ndarray:
    """The one array in a .npy or .safetensors file as float64; pickled objects are refused."""
    files.check_size(data, MAX_BYTES)
    return check(files.npy(data) if data.startswith(b"\x93NUMPY") else _only_tensor(data))


def _only_tensor(data: bytes) -> np.ndarray:
    found = files.safetensors_header(data)
    if found is None:
        raise _refuse("the file is neither .npy nor .safetensors", "文件既不是 .npy 也不是 .safetensors")
    entries, body = found
    if len(entries) != 1:
        raise _refuse(
            "the file must hold one tensor, got {n}: {names}",
            "文件里必须只有一个张量，现在有 {n} 个：{names}",
            n=len(entries),
            names=shown(", ".join(entries), 80),
        )
    (entry,) = entries.values()
    return files.tensor(entry, body)
