"""Uploaded files: every format comes back exactly, hostile ones are one sentence, nothing is executed or unpacked."""

import io
import json
import pickle
import struct
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from posviz import files
from posviz.types import Refusal

X = np.array([[1.5, -2.0, 0.25], [3.0, 1e6, -1e-3]])
LIMITS = {"limit": 200_000, "rows": 50, "cols": 20}


def npy(array, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(compressed: bool = True, **arrays) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        npy(X),
        npy(np.asfortranarray(X)),
        npy(X.astype(">f8")),
        npy(X.astype(np.float64), allow_pickle=False),
        npz(x=X),
        npz(compressed=False, x=X),
        save({"x": torch.tensor(X)}),
        b"1.5,-2.0,0.25\n3.0,1e6,-1e-3\n",
        b"\xef\xbb\xbf1.5;-2.0;0.25\r\n3.0;1e6;-1e-3",
        b"1.5\t-2\t.25\n\n3\t1e6\t-1e-3\n",
        b"  1.5 -2.0   0.25\n3.0 1e6 -1e-3 ",
        b"a,b,c\n1.5,-2.0,0.25\n3.0,1e6,-1e-3\n",
        b",0,1,2\n0,1.5,-2.0,0.25\n1,3.0,1e6,-1e-3\n",  # as posviz saves its pictures
        b'"",0,1,2\n0,1.5,-2.0,0.25\n1,3.0,1e6,-1e-3\n',
    ],
    ids=range(14),
)
def test_the_numbers_come_back_exactly(data: bytes) -> None:
    (array,) = files.read(data, **LIMITS).values()
    np.testing.assert_array_equal(array, X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_safetensors_types(dtype) -> None:
    x = torch.tensor(X[:1], dtype=dtype)
    found = files.read(save({"x": x, "ids": torch.arange(3)}), **LIMITS)
    assert set(found) == {"x"}, "whole numbers are no table"
    np.testing.assert_array_equal(found["x"].astype(np.float64), x.double())


def test_several_arrays_keep_their_names() -> None:
    assert set(files.read(npz(a=X, b=X[:1]), **LIMITS)) == {"a", "b"}


class Boom:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


def zipped(body: bytes, name: str = "x.npy", kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        archive.writestr(name, body)
    return buffer.getvalue()


def promising(shape: str, descr: str = "'<f8'", body: bytes = bytes(64)) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def lying(**entry) -> bytes:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | entry}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


def sharing(count: int, *spans: tuple[int, int]) -> bytes:
    """Tensors of float32 with these spans of 40 kB, the last one ``count`` times."""
    all_spans = (*spans, *[spans[-1]] * (count - 1))
    entries = {f"x{i}": _entry(*span) for i, span in enumerate(all_spans)}
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(40_000)


def _entry(start: int, stop: int) -> dict:
    return {"dtype": "F32", "shape": [(stop - start) // 4], "data_offsets": [start, stop]}


SHARED = "two tensors share bytes of the file"
OBJECTS = "the file holds Python objects (a pickle), which are never read; save numbers only"
UNREADABLE = "the .npy file cannot be read"
NO_ZIP = "the .npz file cannot be read"
NOTHING = "the file is none of .npy, .npz, .safetensors and .csv"
NO_FIT = "the tensor's header does not fit its data"
HOSTILE = {
    "too large": (b"x" * 200_001, "the file has 200,001 bytes; up to 200,000 are read"),
    "empty": (b"", NOTHING),
    "blank": (b" \n\t ", NOTHING),
    "pickle": (pickle.dumps(Boom()), NOTHING),
    "binary": (bytes(range(256)), NOTHING),
    "pickled npy": (npy(np.array([Boom()], dtype=object), allow_pickle=True), OBJECTS),
    "pickled npz": (npz(x=np.array([Boom()], dtype=object)), OBJECTS),
    "magic only": (b"\x93NUMPY", UNREADABLE),
    "cut off": (npy(X)[:-8], UNREADABLE),
    "promises a terabyte": (promising("(100000000000,)"), UNREADABLE),
    "promises more than numbers can say": (promising("(10**400,)"), UNREADABLE),
    "negative": (promising("(-1, 4)"), UNREADABLE),
    "code for a shape": (promising("(__import__('os').getpid(),)"), UNREADABLE),
    "code for a type": (promising("(8,)", "__import__('os')"), UNREADABLE),
    "deep header": (promising("(" * 5000), UNREADABLE),
    "header of the third kind": (b"\x93NUMPY\x03\x00" + bytes(200), UNREADABLE),
    "text": (npy(np.array(["a"])), "the file must hold real numbers, got <U1"),
    "bool": (npy(np.array([True])), "the file must hold real numbers, got bool"),
    "complex": (npy(np.array([1j])), "the file must hold real numbers, got complex128"),
    "records": (
        npy(np.zeros(2, dtype=[("a", "<f4")])),
        "the file must hold real numbers, got [('a', '<f4')]",
    ),
    "zip bomb": (
        zipped(npy(np.zeros(3_000_000))),
        "the .npz file unpacks to more than 200,000 bytes; up to that many are read",
    ),
    "zip of something else": (zipped(b"import os", "x.py"), "the .npz file holds no array"),
    "zip whose array is none": (zipped(b"import os"), NO_ZIP),
    "bzip2": (zipped(npy(X), kind=zipfile.ZIP_BZIP2), NO_ZIP),
    "cut off zip": (npz(x=X)[:-30], NO_ZIP),
    "zip by its name": (b"PK\x03\x04rest", NO_ZIP),
    "tensor longer than its data": (lying(shape=[9]), NO_FIT),
    "tensor outside": (lying(data_offsets=[0, 99]), NO_FIT),
    "tensors over one body": (sharing(500, (0, 40_000)), SHARED),
    "tensors that overlap": (sharing(1, (400, 800), (0, 404)), SHARED),
    "tensor without shape": (lying(shape=None), NO_FIT),
    "tensor of ids": (lying(dtype="I64"), "the file holds no tensor of F64, F32, F16, BF16"),
    "tensors nowhere": (len(b"{}").to_bytes(8, "little") + b"{}", "the file holds no tensor of F64, F32, F16, BF16"),
    "one long line": (
        b"1," * 99_000,
        "the .csv file may have up to 50 rows of 20 numbers, got 1 lines, the longest with 99,001",
    ),
    "long line of spaces": (
        b"1 " * 99_000,
        "the .csv file may have up to 50 rows of 20 numbers, got 1 lines, the longest with 22",
    ),
    "many lines": (
        b"1\n" * 99_000,
        "the .csv file may have up to 50 rows of 20 numbers, got 99,000 lines, the longest with 1",
    ),
    "words": (b"1,2\n3,four\n", "line 2, column 2 of the .csv file is no number: four"),
    "python's numbers": (b"1,2\n3,1_0\n", "line 2, column 2 of the .csv file is no number: 1_0"),
    "an empty cell": (b"1,2\n3,\n", "line 2, column 2 of the .csv file is no number: “”"),
    "a formula": (b"1,2\n3,=cmd|'/c calc'!A0\n", "line 2, column 2 of the .csv file is no number: =cmd|'/c calc'!A0"),
    "unequal": (
        b"1,2\n3\n",
        "line 2 of the .csv file has 1 numbers, the first one 2: all must have the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_files_are_one_sentence(name: str) -> None:
    data, sentence = HOSTILE[name]
    with pytest.raises(Refusal) as caught:
        files.read(data, **LIMITS)
    assert str(caught.value) == sentence
    assert caught.value.text("zh") != sentence


def test_a_bomb_takes_no_memory() -> None:
    """Ten megabytes in one line of a .csv, a zip of a gigabyte of zeros, and a promise of a terabyte."""
    bombs = [b"1," * 5_000_000, b"1 " * 5_000_000, zipped(bytes(200_000_000)), promising("(100000000000,)")]
    for bomb in bombs:
        tracemalloc.start()
        with pytest.raises(Refusal):
            files.read(bomb, limit=20_000_000, rows=8192, cols=4096)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 90_000_000


def test_tensors_side_by_side_are_read() -> None:
    """Also in another order, with gaps, and empty ones anywhere."""
    data = sharing(3, (400, 800), (0, 400), (900, 904), (404, 404))
    found = files.read(data, **LIMITS)
    assert [len(array) for array in found.values()] == [100, 100, 1, 0, 0, 0]


def test_a_thousand_members_are_too_many() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for i in range(513):
            archive.writestr(f"{i}.npy", b"")
    with pytest.raises(Refusal) as caught:
        files.read(buffer.getvalue(), **LIMITS)
    assert str(caught.value) == "the file holds too many arrays; up to 512 are read"


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x93NUMPY\x01\x00v\x00{", b"PK\x03\x04", npy(X)[:70], npz(x=X)[:60]]),
)
def test_no_bytes_do_anything_else(tail: bytes, head: bytes) -> None:
    with suppress(Refusal):
        for array in files.read(head + tail, **LIMITS).values():
            assert array.dtype.kind in "fiu"


@given(st.integers(0, 400), st.integers(0, 255))
def test_one_wrong_byte_does_no_harm(at: int, value: int) -> None:
    for data in (npy(X), npz(x=X), save({"x": torch.tensor(X)})):
        broken = bytearray(data)
        broken[at % len(broken)] = value
        with suppress(Refusal):
            files.read(bytes(broken), **LIMITS)


def test_a_tensor_is_not_called_half_a_surrogate_pair() -> None:
    header = rb'{"\ud800": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    assert files.safetensors_header(len(header).to_bytes(8, "little") + header + bytes(4)) is None
