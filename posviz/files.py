"""Arrays in files that somebody uploads: .npy, .npz, .safetensors, .csv. Read, never executed; sizes before memory.

Every reader takes bytes and checks what a header promises against what is there before it makes an array.
"""

import ast
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from posviz.types import Refusal, Text, shown

FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # of .safetensors
MOST_ARRAYS = 512  # in one file
_HEADER = 10_000  # bytes of a .npy's header
_DIRECTORY = 100_000  # bytes of a .npz's table of contents
_BROKEN = (
    ValueError,
    LookupError,
    EOFError,
    OSError,
    SyntaxError,
    TypeError,
    MemoryError,
    RecursionError,
    OverflowError,
)


def refuse(en: str, zh: str, **values: Any) -> Refusal:
    return Refusal(Text(en, zh), field="file", **values)


def check_size(data: bytes | str, limit: int) -> None:
    if len(data) > limit:
        raise refuse(
            "the file has {size:,} bytes; up to {limit:,} are read",
            "文件有 {size:,} 字节；最多读 {limit:,} 字节",
            size=len(data),
            limit=limit,
        )


def read(data: bytes, *, limit: int, cols: int, rows: int) -> dict[str, np.ndarray]:
    """All arrays of real numbers in a file, by name ("" where the format has none); the format shows in its first bytes.

    limit: bytes of the file, and of what a .npz unpacks to. rows, cols: the largest .csv.
    """
    check_size(data, limit)
    if data.startswith(b"\x93NUMPY"):
        return {"": npy(data)}
    if data.startswith(b"PK"):
        return npz(data, limit)
    found = safetensors_header(data)
    if found is not None:
        entries, body = found
        named = {name: entry for name, entry in entries.items() if _is_float(entry)}
        if not named:
            raise refuse(
                "the file holds no tensor of {allowed}",
                "文件里没有 {allowed} 类型的张量",
                allowed=", ".join(FLOATS),
            )
        return {name: tensor(entry, body) for name, entry in named.items()}
    return {"": csv(data, rows=rows, cols=cols)}


# ---------------------------------------------------------------- numpy
def npy(data: bytes) -> np.ndarray:
    """The array of a .npy file, a view of its bytes; pickled objects are refused."""
    try:
        shape, fortran, dtype, start = _npy_header(data)
        count = math.prod(shape)
        if dtype.hasobject:
            raise refuse(
                "the file holds Python objects (a pickle), which are never read; save numbers only",
                "文件里是 Python 对象（pickle），从不读取；请只存数字",
            )
        if len(data) - start < count * dtype.itemsize:
            raise ValueError
        flat = np.frombuffer(data, dtype, count, offset=start)
        array = flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    except Refusal:
        raise
    except _BROKEN:
        raise refuse("the .npy file cannot be read", "这个 .npy 文件读不了") from None
    if array.dtype.kind not in "fiu":
        raise refuse(
            "the file must hold real numbers, got {got}", "文件里必须是实数，现在是 {got}", got=str(array.dtype)
        )
    return array


def _npy_header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """(shape, by columns, dtype, where the numbers begin): a dictionary of literals behind magic, version and length."""
    wide = {1: 2, 2: 4}[data[6]]  # bytes of the length in versions 1 and 2
    start = 8 + wide
    size = int.from_bytes(data[8:start], "little")
    if size > _HEADER:
        raise ValueError
    header = ast.literal_eval(data[start : start + size].decode("latin-1").strip())
    shape, fortran = header["shape"], header["fortran_order"]
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape) or type(fortran) is not bool:
        raise ValueError
    return shape, fortran, np.lib.format.descr_to_dtype(header["descr"]), start + size


def npz(data: bytes, limit: int) -> dict[str, np.ndarray]:
    """The arrays of a .npz file that are real numbers. limit: bytes of all of them, unpacked."""
    unreadable = refuse("the .npz file cannot be read", "这个 .npz 文件读不了")
    end = data.rfind(b"PK\x05\x06")
    directory = int.from_bytes(data[end + 12 : end + 16], "little")
    if end < 0 or b"PK\x06\x07" in data[max(0, end - 20) : end]:  # a directory beyond 4 GB is nobody's table
        raise unreadable
    try:
        if directory > _DIRECTORY:
            raise _too_many()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            if len(members) > MOST_ARRAYS:
                raise _too_many()
            raw = _unpacked(archive, members, limit)
    except (*_BROKEN, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        raise (error if isinstance(error, Refusal) else unreadable) from None
    found = {}
    for name, body in raw.items():
        if not body.startswith(b"\x93NUMPY"):
            raise unreadable
        array = npy(body)
        found[name.removesuffix(".npy")] = array
    if not found:
        raise refuse("the .npz file holds no array", "这个 .npz 文件里没有数组")
    return found


def _too_many() -> Refusal:
    return refuse(
        "the file holds too many arrays; up to {n} are read", "文件里的数组太多；最多读 {n} 个", n=MOST_ARRAYS
    )


def _unpacked(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], limit: int) -> dict[str, bytes]:
    """Each member's bytes, never more than ``limit`` of all together, whatever the archive says of their sizes."""
    found, left = {}, limit
    for info in members:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError
        with archive.open(info) as member:
            body = member.read(left + 1)
        left -= len(body)
        if left < 0:
            raise refuse(
                "the .npz file unpacks to more than {limit:,} bytes; up to that many are read",
                "这个 .npz 文件解压后超过 {limit:,} 字节；最多读这么多",
                limit=limit,
            )
        found[info.filename] = body
    return found


# ---------------------------------------------------------------- safetensors
def safetensors_header(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    """(name -> entry, the numbers) of a .safetensors file, or None where it is none.

    The format's own words: 8 bytes little endian with the header's length, the header as JSON, the numbers.
    """
    size = int.from_bytes(data[:8], "little")
    if not 2 <= size <= len(data) - 8 or data[8:9] != b"{":
        return None
    try:
        header = json.loads(data[8 : 8 + size])
        json.dumps(header, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair is no name
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict):
        return None
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(entries) > MOST_ARRAYS:
        raise _too_many()
    _check_apart(entries)
    return entries, data[8 + size :]


def _check_apart(entries: Mapping[str, Any]) -> None:
    """The format's own rule: no byte belongs to two tensors, or a small file would fill the memory."""
    spans = []
    for entry in entries.values():
        try:
            start, stop = (int(n) for n in entry["data_offsets"])
        except (LookupError, ValueError, TypeError, OverflowError):
            continue  # refused where it is read
        spans.append((start, stop))
    spans = sorted(span for span in spans if span[0] < span[1])
    if any(stop > start for (_, stop), (start, _) in pairwise(spans)):
        raise refuse("two tensors share bytes of the file", "文件里有两个张量共用了同一段字节")


def _is_float(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("dtype") in FLOATS


def tensor(entry: Any, body: bytes) -> np.ndarray:
    """One tensor of a .safetensors file; refused where its type is no float or the header does not fit the data."""
    if not _is_float(entry):
        raise refuse(
            "the tensor must be one of {allowed}, got {got}",
            "张量的类型只能是 {allowed} 之一，现在是 {got}",
            allowed=", ".join(FLOATS),
            got=shown(entry.get("dtype") if isinstance(entry, dict) else entry),
        )
    kind = FLOATS[entry["dtype"]]
    try:
        shape = [int(n) for n in entry["shape"]]
        start, stop = (int(n) for n in entry["data_offsets"])
        if not 0 <= start <= stop <= len(body) or any(n < 0 for n in shape):
            raise ValueError
        numbers = np.frombuffer(memoryview(body)[start:stop], kind).reshape(shape)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise refuse("the tensor's header does not fit its data", "张量的头部与数据对不上") from None
    if kind == "<u2":  # bfloat16: the upper half of a float32
        numbers = (numbers.astype("<u4") << 16).view("<f4")
    return numbers


# ---------------------------------------------------------------- csv
def csv(data: bytes, *, rows: int, cols: int) -> np.ndarray:
    """(rows, cols) float64 of lines of numbers with commas, semicolons, tabs or spaces between.

    A first line of names is left out; where its first cell is empty, so is the first column, which numbers the rows.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip() or "\0" in text:
        raise refuse(
            "the file is none of .npy, .npz, .safetensors and .csv", "文件不是 .npy、.npz、.safetensors，也不是 .csv"
        )
    lines = [line for line in text.splitlines() if line.strip()]
    between = next((mark for mark in ("\t", ";", ",") if mark in lines[0]), None)
    _check_lines(lines, between, rows, cols)
    head = [cell.strip().strip('"') for cell in lines[0].split(between)]
    named = _floats(head) is None
    numbered = named and head[0] == ""
    found = []
    for at, line in enumerate(lines[named:], 1 + named):
        cells = [cell.strip() for cell in line.split(between)][numbered:]
        numbers = _floats(cells)
        if numbers is None:
            wrong = next(i for i, cell in enumerate(cells) if _floats([cell]) is None)
            raise refuse(
                "line {at}, column {col} of the .csv file is no number: {got}",
                ".csv 文件第 {at} 行第 {col} 列不是数：{got}",
                at=at,
                col=wrong + 1 + numbered,
                got=shown(cells[wrong]) or "“”",
            )
        if found and len(numbers) != len(found[0]):
            raise refuse(
                "line {at} of the .csv file has {got} numbers, the first one {want}: all must have the same",
                ".csv 文件第 {at} 行有 {got} 个数，第一行有 {want} 个：各行必须一样多",
                at=at,
                got=len(numbers),
                want=len(found[0]),
            )
        found.append(numbers)
    return np.array(found) if found else np.empty((0, 0))


def _check_lines(lines: list[str], between: str | None, rows: int, cols: int) -> None:
    """Refuse what would be too large before it is taken apart: names and row numbers are one more each."""
    widest = max(line.count(between) + 1 if between else len(line.split(None, cols + 1)) for line in lines)
    if len(lines) > rows + 1 or widest > cols + 1:
        raise refuse(
            "the .csv file may have up to {rows:,} rows of {cols:,} numbers, got {got:,} lines, the longest with {widest:,}",
            ".csv 文件最多 {rows:,} 行，每行 {cols:,} 个数；现在有 {got:,} 行，最长的有 {widest:,} 个",
            rows=rows,
            cols=cols,
            got=len(lines),
            widest=widest,
        )


def _floats(cells: list[str]) -> np.ndarray | None:
    """The cells as float64, also nan and inf; None where one is no number (1_0 and ٣ are none here)."""
    if any("_" in cell or not cell.isascii() for cell in cells):
        return None
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None
