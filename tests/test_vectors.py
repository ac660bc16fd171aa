"""Pasted and uploaded numbers: every usual print is read, everything else is one sentence, nothing is executed."""

import io
import json
import pickle
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.torch import save

from posviz import vectors
from posviz.types import Refusal

X = np.array([[1.0, -2.5, 3e-5, 4.0], [0.0, 1e6, -0.125, 7.0]])


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(X.tolist()),
        repr(torch.tensor(X)),
        repr(X),
        str(X),
        str(X.tolist()),
        f"torch.tensor({X.tolist()}, dtype=torch.float64, requires_grad=True)",
        "1 -2.5 3e-5 4\n0 1e6 -.125 7.",
        "1, -2.5, 3e-5, 4\n\n0; 1e6; -0.125; 7\n",
        "((1,-2.5,3e-5,4),(0,1e6,-0.125,7),)",
    ],
    ids=range(9),
)
def test_usual_prints_are_read(text: str) -> None:
    np.testing.assert_allclose(vectors.parse(text), X, rtol=1e-4)


def test_one_row_is_a_vector() -> None:
    assert vectors.parse("1 2 3 4").shape == (4,)
    assert vectors.parse("[1, 2, 3, 4]").shape == (4,)
    assert vectors.parse("[[1, 2, 3, 4]]").shape == (1, 4)


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.floats(-1e9, 1e9)))
def test_json_comes_back_exactly(array: np.ndarray) -> None:
    np.testing.assert_array_equal(vectors.parse(json.dumps(array.tolist())), array)


BAD = [
    ("", "there are no numbers", "没有数"),
    (
        "tensor([1., 2., ..., 3.])",
        "the numbers were shortened when printed (…): print all of them, for example with torch.set_printoptions(profile='full')",
        "打印时省略了一部分数（…）：请全部打印出来，例如先用 torch.set_printoptions(profile='full')",
    ),
    ("1 2 x", "`x` at character 5 is not a number", "第 5 个字符处的 `x` 不是数"),
    ("__import__('os')", "`__import__('` at character 1 is not a number", "第 1 个字符处的 `__import__('` 不是数"),
    ("[1, nan]", "`nan]` at character 5 is not a number", "第 5 个字符处的 `nan]` 不是数"),
    ("[[1, 2], [3]]", "the rows do not all have the same length", "各行的长度不一样"),
    ("[1, 2", "a bracket is not closed", "有一个括号没有关上"),
    ("1, 2]", "a bracket is closed that was never opened", "有一个括号没有开头"),
    ("[" * 50, "the numbers are nested more than 4 deep", "数的嵌套超过了 4 层"),
    ("[]", "vectors have 1 to 4 axes, got the shape (0,)", "向量应有 1 到 4 个轴，现在的形状是 (0,)"),
    ("1 " * 200_001, "there are 200,001 numbers; up to 200,000 are read", "有 200,001 个数；最多读 200,000 个"),
    ("[1e400]", "the numbers must be finite", "数必须是有限的"),
    (
        " " * 4_000_001,
        "the file has 4,000,001 bytes; up to 4,000,000 are read",
        "文件有 4,000,001 字节；最多读 4,000,000 字节",
    ),
]


@pytest.mark.parametrize(("text", "english", "chinese"), BAD, ids=range(len(BAD)))
def test_anything_else_is_one_sentence(text: str, english: str, chinese: str) -> None:
    with pytest.raises(Refusal) as caught:
        vectors.parse(text)
    assert str(caught.value) == english
    assert caught.value.text("zh") == chinese


@given(st.text(max_size=60))
def test_no_text_does_anything_else(text: str) -> None:
    with suppress(Refusal):
        assert np.isfinite(vectors.parse(text)).all()


def npy(array, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int32])
def test_npy(dtype) -> None:
    np.testing.assert_array_equal(
        vectors.load(npy(np.arange(6, dtype=dtype).reshape(2, 3))), np.arange(6.0).reshape(2, 3)
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_safetensors(dtype: torch.dtype) -> None:
    x = torch.tensor([[1.5, -2.0], [0.25, 3.0]], dtype=dtype)
    np.testing.assert_array_equal(vectors.load(save({"q": x}, metadata={"format": "pt"})), x.double())


class Boom:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


OBJECTS = "the file holds Python objects (a pickle), which are never read; save numbers only"
FILES = [
    (b"x" * 4_000_001, "the file has 4,000,001 bytes; up to 4,000,000 are read"),
    (b"", "the file is neither .npy nor .safetensors"),
    (b"PK\x03\x04rest", "the file is neither .npy nor .safetensors"),
    (pickle.dumps(Boom()), "the file is neither .npy nor .safetensors"),
    (b"\x93NUMPY", "the .npy file cannot be read"),
    (npy(np.array([Boom()], dtype=object), allow_pickle=True), OBJECTS),
    (npy(np.ones(4))[:-8], "the .npy file cannot be read"),
    (npy(np.array(["a"])), "the file must hold real numbers, got <U1"),
    (npy(np.array([1j])), "the file must hold real numbers, got complex128"),
    (npy(np.array([np.inf])), "the numbers must be finite"),
    (npy(np.float64(3)), "vectors have 1 to 4 axes, got the shape ()"),
    (save({"a": torch.ones(2), "b": torch.ones(2)}), "the file must hold one tensor, got 2: a, b"),
    (save({"a": torch.ones(2, dtype=torch.int64)}), "the tensor must be one of F64, F32, F16, BF16, got I64"),
    (b"\xff" * 8 + b"{}", "the file is neither .npy nor .safetensors"),
    (b"\x07" + bytes(7) + b'{"a":1}', "the tensor must be one of F64, F32, F16, BF16, got 1"),
]


@pytest.mark.parametrize(("data", "sentence"), FILES, ids=range(len(FILES)))
def test_other_files_are_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(Refusal) as caught:
        vectors.load(data)
    assert str(caught.value) == sentence
    assert caught.value.text("zh") != sentence


def test_a_header_that_lies_is_refused() -> None:
    for entry in (
        {},
        {"shape": [9], "data_offsets": [0, 8]},
        {"shape": [-1], "data_offsets": [0, 8]},
        {"shape": [2], "data_offsets": [0, 99]},
        {"shape": ["x"], "data_offsets": [0, 8]},
    ):
        header = json.dumps({"a": {"dtype": "F32", **entry}}).encode()
        with pytest.raises(Refusal, match="the tensor's header does not fit its data"):
            vectors.load(len(header).to_bytes(8, "little") + header + bytes(8))


LONG = [
    ("1" * 3_999_999 + "x", "`111111111111` at character 1 is not a number"),
    ("tensor(" + " " * 3_999_000 + "x", "`tensor(     ` at character 1 is not a number"),
    ("tensor(" + ", a=1" * 700_000 + "x", "`tensor(, a=1` at character 1 is not a number"),
    ("tensor([x" + ", a=1" * 700_000 + ")", "`x` at character 2 is not a number"),
]


@pytest.mark.parametrize(("given_text", "sentence"), LONG, ids=range(len(LONG)))
def test_a_long_text_is_read_once(given_text: str, sentence: str) -> None:
    """Where a character is tried again for every one before it, these take hours."""
    with pytest.raises(Refusal) as caught:
        vectors.parse(given_text)
    assert str(caught.value) == sentence


def test_options_of_a_print_are_left_out_and_nothing_else() -> None:
    for options in (", dtype=torch.float64", ",a=1,b='x'", ", device='cuda:0', requires_grad=True ", ""):
        assert vectors.parse(f" np.array([1., .5e1]{options}) \n").tolist() == [1, 5]
    with pytest.raises(Refusal) as caught:
        vectors.parse("tensor([1], a=1 , b=2)")
    assert str(caught.value) == "`a=1 ` at character 6 is not a number"
