"""Sizes, refusals and the small helpers every layer uses."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import posviz
from posviz.types import Dims, Refusal, Text, Tokens, read_only, real_number, shown, whole_number


def refusal(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


@pytest.mark.parametrize(
    ("given", "english", "chinese"),
    [
        (
            {"d_model": 0, "n_heads": 1},
            "`d_model` must be a whole number from 1 to 1024, got 0",
            "`d_model` 必须是 1 到 1024 的整数，现在是 0",
        ),
        (
            {"d_model": 1025, "n_heads": 1},
            "`d_model` must be a whole number from 1 to 1024, got 1025",
            "`d_model` 必须是 1 到 1024 的整数，现在是 1025",
        ),
        (
            {"d_model": 64, "n_heads": 65},
            "`n_heads` must be a whole number from 1 to 64, got 65",
            "`n_heads` 必须是 1 到 64 的整数，现在是 65",
        ),
        (
            {"d_model": 64, "n_heads": 0},
            "`n_heads` must be a whole number from 1 to 64, got 0",
            "`n_heads` 必须是 1 到 64 的整数，现在是 0",
        ),
        (
            {"d_model": 12, "n_heads": 5},
            "`n_heads` must divide d_model, got 5 heads for d_model 12; "
            "d_model 12 can be split into 1, 2, 3, 4, 6, 12 heads",
            "头数必须整除 d_model，现在是 5 个头、d_model 12；d_model 12 可以分成 1, 2, 3, 4, 6, 12 个头",
        ),
        (
            {"d_model": 64.0, "n_heads": 4},
            "`d_model` must be a whole number from 1 to 1024, got 64.0",
            "`d_model` 必须是 1 到 1024 的整数，现在是 64.0",
        ),
        (
            {"d_model": "64", "n_heads": 4},
            "`d_model` must be a whole number from 1 to 1024, got '64'",
            "`d_model` 必须是 1 到 1024 的整数，现在是 '64'",
        ),
        (
            {"d_model": True, "n_heads": 1},
            "`d_model` must be a whole number from 1 to 1024, got True",
            "`d_model` 必须是 1 到 1024 的整数，现在是 True",
        ),
        (
            {"d_model": math.nan, "n_heads": 1},
            "`d_model` must be a whole number from 1 to 1024, got nan",
            "`d_model` 必须是 1 到 1024 的整数，现在是 nan",
        ),
        (
            {"d_model": 10**5000, "n_heads": 1},  # repr() refuses numbers this long
            "`d_model` must be a whole number from 1 to 1024, got 2^16609…",
            "`d_model` 必须是 1 到 1024 的整数，现在是 2^16609…",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_dims_are_refused_with_the_whole_story(given, english, chinese):
    error = refusal(Dims, **given)
    assert str(error) == english
    assert error.text("en") == english
    assert error.text("zh") == chinese
    assert error.field in given


@given(st.integers(-3, 1100), st.integers(-3, 70))
def test_dims_split_exactly_or_are_refused(d_model, n_heads):
    try:
        dims = Dims(d_model=d_model, n_heads=n_heads)
    except Refusal:
        assert not (1 <= d_model <= 1024 and 1 <= n_heads <= 64 and d_model % n_heads == 0)
    else:
        assert dims.d_head * n_heads == d_model


def test_the_heads_a_refusal_offers_all_fit():
    error = refusal(Dims, d_model=96, n_heads=64)
    offered = str(error).rsplit("into ", 1)[1].removesuffix(" heads")
    assert offered == "1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48"
    for heads in offered.split(", "):
        Dims(d_model=96, n_heads=int(heads))


def test_dims_are_values():
    a = Dims(d_model=64, n_heads=4)
    assert a == Dims(d_model=64, n_heads=4)
    assert hash(a) == hash(Dims(d_model=64, n_heads=4))
    assert a.d_head == 16
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.d_model = 32
    with pytest.raises(TypeError, match="positional"):
        Dims(64, 4)


def test_a_refusal_is_a_value_error_and_survives_copying():
    error = refusal(Dims, d_model=7, n_heads=2)
    assert isinstance(error, ValueError)
    assert posviz.Refusal is Refusal
    for twin in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(twin) == str(error)
        assert twin.text("zh") == error.text("zh")
        assert twin.field == "n_heads"


def test_values_may_be_in_both_languages_and_hold_braces():
    error = Refusal(Text("{what}: {got}", "{what}：{got}"), field="f", what=Text("a", "甲"), got="{x} {")
    assert str(error) == "a: {x} {"
    assert error.text("zh") == "甲：{x} {"


def test_text_picks_its_language():
    text = Text("one {n}", "一 {n}")
    assert (text(), text("en"), text("zh")) == ("one {n}", "one {n}", "一 {n}")
    assert text("zh", n=3) == "一 3"


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (1.5, "1.5"),
        (math.inf, "inf"),
        (None, "None"),
        ("plain", "plain"),
        ("a\nb\x00c", "a\ufffdb\ufffdc"),
        ("\u202eleft", "\ufffdleft"),
        ("\ud800", "\ufffd"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
        (-(10**5000), "-2^16609…"),
        ([1, 2], "[1, 2]"),
    ],
    ids=range(11),
)
def test_shown_is_short_and_has_no_control_characters(value, quoted):
    assert shown(value) == quoted


@given(st.text(max_size=200) | st.integers() | st.floats() | st.binary(max_size=60))
def test_shown_always_fits_one_line(value):
    text = shown(value)
    assert len(text) <= 40
    assert text.isprintable()


def test_numbers_at_the_ends_of_their_range():
    assert whole_number("n", 1, 1, 5) == 1
    assert whole_number("n", np.int64(5), 1, 5) == 5
    assert type(whole_number("n", np.int64(5), 1, 5)) is int
    assert real_number("x", 0, 0, 1) == 0.0
    assert type(real_number("x", np.float32(1), 0, 1)) is float
    assert str(refusal(real_number, "x", 0, 0, 1, above=True)) == (
        "`x` must be a finite number above 0 and up to 1, got 0"
    )
    assert str(refusal(real_number, "x", 1.0, 0, 1, below=True)) == (
        "`x` must be a finite number from 0 and below 1, got 1.0"
    )
    assert refusal(real_number, "x", 1.0, 0, 1, below=True).text("zh") == (
        "`x` 必须是不小于 0、小于 1 的有限数，现在是 1.0"
    )
    assert str(refusal(real_number, "x", 10**400, 0, 1)) == (
        "`x` must be a finite number from 0 and up to 1, got 1" + "0" * 38 + "…"
    )


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_an_open_range_takes_no_infinity(bad):
    error = refusal(real_number, "x", bad, -math.inf, math.inf)
    assert str(error) == f"`x` must be a finite number from -inf and up to inf, got {bad}"


def test_labels_are_unique_even_for_pieces_that_look_like_labels():
    tokens = Tokens("aa·0", ("a", "a", "·", "a·0"), (1, 1, 2, 3))
    assert tokens.labels == ("a·0", "a·1", "··2", "a·0·3")
    assert len(tokens) == 4


def test_read_only_copies():
    source = np.arange(3.0)
    copied = read_only(source)
    source[0] = 9
    assert copied[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        copied[0] = 1


def test_read_only_takes_every_kind_of_tensor():
    trainable = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    assert read_only(trainable).tolist() == [1.0, 2.0]
    assert read_only(trainable, np.float64).dtype == np.float64
    # numpy has no bfloat16; float32 says the same
    half = torch.tensor([1.0078125, 3.0], dtype=torch.bfloat16)
    assert read_only(half).dtype == np.float32
    assert read_only(half).tolist() == [1.0078125, 3.0]


def test_public_names():
    assert posviz.__all__ == ["AttentionTrace", "Dims", "Refusal", "Text", "Tokens", "__version__"]
    for name in posviz.__all__:
        assert getattr(posviz, name) is not None
