"""The scalings of RoPE: public cases, transformers' numbers, 50 digits, and the laws that each must keep."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from posviz import encodings, rope_scaling
from posviz.rope_scaling import DynamicNtk, Linear, Llama3, LongRope, NtkAware, Proportional, Scaling, Yarn
from posviz.types import Refusal

GOLDEN = json.loads((Path(__file__).parent / "golden/rope_scaling.json").read_text("utf-8"))
CASES = {entry["id"]: entry for entry in GOLDEN["cases"]}
BASES = st.floats(10.0, 1e8)
EVEN = st.integers(2, 64).map(lambda n: 2 * n)
FACTORS = st.floats(1.0, 128.0)
LENGTHS = st.integers(64, 262_144)


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


def model(scaling: dict, *, d_head: int = 128, base: float = 1e4, length: int = 4096, **more) -> encodings.ModelRope:
    return encodings.rope_from_config(
        {
            "head_dim": d_head,
            "max_position_embeddings": length,
            "rope_theta": base,
            "rope_scaling": scaling,
            **more,
        }
    )


# ---- public cases


def test_dynamic_base() -> None:
    entry = CASES["rope-dynamic-ntk-base"]
    params = entry["params"]
    spec = DynamicNtk(factor=params["factor"], max_position_embeddings=params["max_position_embeddings"])
    got = [spec.base(params["dim"], params["base"], length) for length in entry["input"]["seq_len"]]
    np.testing.assert_allclose(got, entry["expected"], rtol=0, atol=entry["tolerance"])


def test_dynamic_forgets() -> None:
    entry = CASES["rope-dynamic-reset"]
    params = entry["params"]
    rope = model({"type": "dynamic", "factor": params["factor"]}, length=params["max_position_embeddings"])
    for length in entry["input"]["calls_seq_len"]:
        got = rope.inv_freq(length)
    np.testing.assert_allclose(got[entry["input"]["pairs"]], entry["expected"], rtol=0, atol=entry["tolerance"])


def test_yarn_attention_factors() -> None:
    entry = CASES["yarn-attention-factor"]
    got = [
        model({"rope_type": "yarn", "original_max_position_embeddings": 4096, **given}).attention_factor()
        for given in entry["input"]["configs"]
    ]
    np.testing.assert_allclose(got, entry["expected"], rtol=0, atol=entry["tolerance"])


def test_yarn_ramp() -> None:
    entry = CASES["yarn-ramp-truncate-true"]
    given, expected = entry["params"], entry["expected"]
    names = ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate")
    spec = Yarn(**{name: given[name] for name in names})
    assert spec.band(given["dim"], given["base"]) == (expected["low"], expected["high"])
    got = spec.inv_freq(given["dim"], given["base"])[entry["input"]["pairs"]]
    np.testing.assert_allclose(got, expected["inv_freq"], rtol=entry["tolerance"])


def test_llama3_bands() -> None:
    entry = CASES["llama3-three-bands"]
    given = dict(entry["params"])
    width, base = given.pop("dim"), given.pop("base")
    got = Llama3(**given).inv_freq(width, base) / Scaling().inv_freq(width, base)
    np.testing.assert_allclose(got[entry["input"]["pairs"]], entry["expected"], rtol=0, atol=entry["tolerance"])


def test_longrope_switches() -> None:
    entry = CASES["longrope-switch-and-scale"]
    given, expected = entry["params"], entry["expected"]
    lists = {name: given[name] for name in ("short_factor", "long_factor", "original_max_position_embeddings")}
    rope = model(
        {"type": "longrope", **lists}, d_head=given["dim"], base=given["base"], length=given["max_position_embeddings"]
    )
    for length, inv_freq in zip(entry["input"]["seq_len"], expected["inv_freq"], strict=True):
        np.testing.assert_allclose(rope.inv_freq(length), inv_freq, rtol=entry["tolerance"])
        assert rope.attention_factor(length) == pytest.approx(expected["attention_factor"], abs=entry["tolerance"])


def test_mrope_sections() -> None:
    entry = CASES["mrope-sections"]
    given = entry["params"]
    rope = model(
        {"type": "mrope", "mrope_section": given["mrope_section"]}, d_head=given["head_dim"], base=given["base"]
    )
    got = rope.angles([entry["input"]["position_thw"]])[0]
    np.testing.assert_allclose(got, entry["expected"], rtol=0, atol=entry["tolerance"])


def test_no_case_is_left_out() -> None:
    source = Path(__file__).read_text("utf-8")
    assert [name for name in CASES if f'"{name}"' not in source] == []
    assert all(entry["source"] for entry in CASES.values())
    assert len(CASES) == 7


@pytest.mark.parametrize("index", range(len(GOLDEN["reference"])))
def test_reference_arrays(index: int) -> None:
    """Arrays of transformers, which works in float32."""
    entry = GOLDEN["reference"][index]
    rope = model(
        {"rope_type": entry["rope_type"], **entry["rope_parameters"]},
        d_head=entry["head_dim"],
        length=entry["max_position_embeddings"],
    )
    np.testing.assert_allclose(rope.inv_freq(entry["seq_len"]), entry["inv_freq"], rtol=1e-6)
    assert rope.attention_factor(entry["seq_len"]) == pytest.approx(entry["attention_factor"], rel=1e-12)


@pytest.mark.parametrize("entry", GOLDEN["critical_dimension"]["values"], ids=str)
def test_critical_dimension(entry: dict) -> None:
    assert rope_scaling.critical_dimension(entry["d"], entry["base"], entry["T"]) == entry["value"]


def test_critical_dimension_has_ends() -> None:
    assert rope_scaling.critical_dimension(64, 1e4, 6) == 0
    assert rope_scaling.critical_dimension(64, 1e4, 10**9) == 64
    for base in (1.0, 0.5):  # every pair turns as fast as the first one, or faster
        assert rope_scaling.critical_dimension(128, base, 4096) == 128


# ---- 50 digits


def test_yarn_against_50_digits() -> None:
    mp.dps = 50
    spec = Yarn(factor=4.0, original_max_position_embeddings=32_768, truncate=False)
    got = spec.inv_freq(128, 1e6).tolist()
    low, high = (128 * mp.log(mpf(32_768) / (turns * 2 * mp.pi)) / (2 * mp.log(mpf(10) ** 6)) for turns in (32, 1))
    for i, value in enumerate(got):
        ramp = min(max((i - low) / (high - low), mpf(0)), mpf(1))
        exact = mpf(10) ** (-6 * mpf(2 * i) / 128) * (1 - ramp + ramp / 4)
        assert abs(value - exact) < 1e-13 * exact


def test_llama3_against_50_digits() -> None:
    mp.dps = 50
    spec = Llama3(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
    for i, value in enumerate(spec.inv_freq(128, 5e5).tolist()):
        kept = mpf(500_000) ** (-mpf(2 * i) / 128)
        share = min(max((8192 * kept / (2 * mp.pi) - 1) / 3, mpf(0)), mpf(1))
        exact = kept * (share + (1 - share) / 8)
        assert abs(value - exact) < 1e-13 * exact


# ---- laws


@given(EVEN, BASES, FACTORS)
def test_linear_divides_every_frequency(width: int, base: float, factor: float) -> None:
    got = Linear(factor=factor).inv_freq(width, base)
    torch.testing.assert_close(got, Scaling().inv_freq(width, base) / factor, rtol=1e-15, atol=0)


@given(EVEN, BASES, FACTORS)
def test_ntk_keeps_the_first_pair_and_divides_the_last(width: int, base: float, factor: float) -> None:
    plain, got = Scaling().inv_freq(width, base), NtkAware(factor=factor).inv_freq(width, base)
    assert got[0] == 1.0
    assert got[-1].item() == pytest.approx(plain[-1].item() / factor, rel=1e-12)


@given(EVEN, BASES, FACTORS, LENGTHS, st.integers(1, 300_000))
def test_dynamic_starts_where_training_ended(width: int, base: float, factor: float, length: int, now: int) -> None:
    spec = DynamicNtk(factor=factor, max_position_embeddings=length)
    got, plain = spec.inv_freq(width, base, now), Scaling().inv_freq(width, base)
    if now <= length:
        assert torch.equal(got, plain)
    assert bool((got <= plain * (1 + 1e-12)).all())
    assert torch.equal(spec.inv_freq(width, base), plain)


@given(EVEN, BASES, FACTORS, LENGTHS, st.booleans())
def test_yarn_lies_between_keeping_and_dividing(width: int, base: float, s: float, length: int, cut: bool) -> None:
    spec = Yarn(factor=s, original_max_position_embeddings=length, truncate=cut)
    share = (spec.inv_freq(width, base) / Scaling().inv_freq(width, base)).numpy()
    assert (share <= 1 + 1e-12).all() and (share >= 1 / s - 1e-12).all()
    assert (np.diff(share) <= 1e-12).all()  # no pair is stretched less than a faster one
    low, high = spec.band(width, base)
    pairs = np.arange(width // 2)
    np.testing.assert_allclose(share[pairs <= low], 1.0, rtol=1e-12)
    if high > low:
        np.testing.assert_allclose(share[pairs >= high], 1 / s, rtol=1e-12)


@given(BASES, FACTORS, LENGTHS, st.floats(0.1, 4), st.floats(1.01, 16))
def test_llama3_is_continuous_at_its_edges(base: float, s: float, length: int, low: float, ratio: float) -> None:
    """Many pairs, so that some lie close to each edge: one step changes w'/w by no more than it must."""
    spec = Llama3(factor=s, low_freq_factor=low, high_freq_factor=low * ratio, original_max_position_embeddings=length)
    width = 8192
    plain = Scaling().inv_freq(width, base)
    share = (spec.inv_freq(width, base) / plain).numpy()
    turns = (length * plain / (2 * math.pi)).numpy()
    steepest = (1 - 1 / s) * np.abs(np.diff(turns)).max(initial=0) / (low * (ratio - 1))
    inside = (turns < low * ratio * 1.1) & (turns > low / 1.1)
    if inside.any():
        near = np.abs(np.diff(turns))[inside[1:] & inside[:-1]]
        steepest = (1 - 1 / s) * near.max(initial=0) / (low * (ratio - 1))
        assert np.abs(np.diff(share))[inside[1:] & inside[:-1]].max(initial=0) <= steepest * 1.0001 + 1e-12
    np.testing.assert_allclose(share[turns >= low * ratio], 1.0, rtol=1e-12)
    np.testing.assert_allclose(share[turns <= low], 1 / s, rtol=1e-12)


SPECS = {
    "default": {},
    "linear": {"type": "linear", "factor": 4.0},
    "ntk": {"type": "ntk", "factor": 4.0},
    "dynamic": {"type": "dynamic", "factor": 4.0},
    "yarn": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    "llama3": {
        "type": "llama3",
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "longrope": {
        "type": "longrope",
        "factor": 4.0,
        "short_factor": [1.0] * 8,
        "long_factor": [float(i + 1) for i in range(8)],
        "original_max_position_embeddings": 64,
    },
    "proportional": {"type": "proportional", "partial_rotary_factor": 0.5},
    "mrope": {"type": "mrope", "mrope_section": [2, 3, 3]},
}


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("pairing", [False, True])
@settings(max_examples=12)
@given(seed=st.integers(0, 99), m=st.integers(0, 200), n=st.integers(0, 200), shift=st.integers(0, 50))
def test_turning_keeps_lengths_and_sees_distances_only(
    kind: str, pairing: bool, seed: int, m: int, n: int, shift: int
) -> None:
    rope = model(SPECS[kind], d_head=16, length=64, rope_interleave=pairing)
    assert rope.pairing == ("interleaved" if pairing else "half")
    q, k = torch.randn(2, 1, 16, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    text = 300  # the length of the text stays the same when both move
    turned = rope.rotate(q, [m], text)
    factor = rope.attention_factor(text)
    assert turned.norm().item() == pytest.approx(factor * q.norm().item(), rel=1e-12)
    here = (turned * rope.rotate(k, [n], text)).sum()
    there = (rope.rotate(q, [m + shift], text) * rope.rotate(k, [n + shift], text)).sum()
    assert abs(here - there) < 1e-10
    twice = rope.rotate(rope.rotate(q, [m], text), [n], text)
    torch.testing.assert_close(twice, factor * rope.rotate(q, [m + n], text), rtol=0, atol=1e-10)


def test_equal_axes_are_one_dimensional() -> None:
    rope = model(SPECS["mrope"], d_head=16)
    plain = model({}, d_head=16)
    positions = [0, 3, 70]
    torch.testing.assert_close(rope.angles([[p] * 3 for p in positions]), plain.angles(positions), rtol=0, atol=0)
    assert rope.pair_axes().tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    turns = model({**SPECS["mrope"], "mrope_interleaved": True}, d_head=16)
    assert turns.pair_axes().tolist() == [0, 1, 2, 0, 1, 2, 0, 1]


def test_the_share_that_rests_passes_unchanged() -> None:
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    partial = model({"type": "yarn", "factor": 4.0}, d_head=16, partial_rotary_factor=0.5)
    turned = partial.rotate(x, [5, 6, 7])
    assert torch.equal(turned[:, 8:], x[:, 8:])  # not even lengthened
    assert partial.attention_factor() > 1
    rest = model(SPECS["proportional"], d_head=16).rotate(x, [5, 6, 7])
    assert torch.equal(rest[:, 4:8], x[:, 4:8]) and torch.equal(rest[:, 12:], x[:, 12:])
    assert not torch.equal(rest[:, :4], x[:, :4])


# ---- refusals


YARN = {"factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LONG = {"short_factor": [1.0], "long_factor": [1.0], "factor": 2.0, "original_max_position_embeddings": 64}
BAD = [
    (Linear, {"factor": 0.5}, "factor", "`factor` must be a finite number from 1 and up to 1e+06, got 0.5"),
    (Linear, {"factor": "4"}, "factor", "`factor` must be a finite number from 1 and up to 1e+06, got '4'"),
    (NtkAware, {"factor": math.nan}, "factor", "`factor` must be a finite number from 1 and up to 1e+06, got nan"),
    (
        DynamicNtk,
        {"factor": 2.0, "max_position_embeddings": 2048.0},
        "max_position_embeddings",
        "`max_position_embeddings` must be a whole number from 1 to 2147483647, got 2048.0",
    ),
    (
        Yarn,
        {**YARN, "beta_fast": 1, "beta_slow": 32},
        "beta_fast",
        "`beta_fast` must not be below beta_slow, got beta_fast 1 and beta_slow 32; are they exchanged?",
    ),
    (
        Yarn,
        {**YARN, "beta_slow": 0},
        "beta_slow",
        "`beta_slow` must be a finite number above 0 and up to 1e+06, got 0",
    ),
    (Yarn, {**YARN, "truncate": 1}, "truncate", "`truncate` must be true or false, got 1"),
    (Yarn, {**YARN, "mscale": -1.0}, "mscale", "`mscale` must be a finite number from 0 and up to 100, got -1.0"),
    (
        Yarn,
        {**YARN, "given_attention_factor": 0.0},
        "attention_factor",
        "`attention_factor` must be a finite number above 0 and up to 100, got 0.0",
    ),
    (
        Llama3,
        {**LLAMA3, "high_freq_factor": 1.0},
        "high_freq_factor",
        "`high_freq_factor` must be above low_freq_factor, got high_freq_factor 1 and low_freq_factor 1",
    ),
    (
        Llama3,
        {**LLAMA3, "original_max_position_embeddings": 0},
        "original_max_position_embeddings",
        "`original_max_position_embeddings` must be a whole number from 1 to 2147483647, got 0",
    ),
    (
        LongRope,
        {**LONG, "long_factor": [1.0, 0.0]},
        "long_factor[1]",
        "`long_factor[1]` must be a finite number above 0 and up to 1e+06, got 0.0",
    ),
    (
        LongRope,
        {**LONG, "short_factor": "1"},
        "short_factor",
        "`short_factor` must be a list of 1 to 4096 numbers, got 1",
    ),
    (
        LongRope,
        {**LONG, "original_max_position_embeddings": 1},
        "original_max_position_embeddings",
        "`original_max_position_embeddings` must be a whole number from 2 to 2147483647, got 1",
    ),
    (
        Proportional,
        {"share": 0.0},
        "partial_rotary_factor",
        "`partial_rotary_factor` must be a finite number above 0 and up to 1, got 0.0",
    ),
]


@pytest.mark.parametrize(("cls", "given", "field", "sentence"), BAD, ids=range(len(BAD)))
def test_refusals_name_the_field(cls, given: dict, field: str, sentence: str) -> None:
    error = refused(cls, **given)
    assert (error.field, str(error)) == (field, sentence)
    assert error.text("zh") != sentence


def test_refusals_of_widths() -> None:
    error = refused(NtkAware(factor=2.0).inv_freq, 2, 1e4)
    assert str(error) == "NTK scaling needs at least two pairs to turn, got a width of 2"
    assert error.text("zh") == "NTK 缩放至少需要两对维度旋转，现在的宽度是 2"
    error = refused(LongRope(**LONG).inv_freq, 8, 1e4)
    assert str(error) == "`short_factor` must have one number for each of the 4 pairs, got 1"
    assert error.text("zh") == "`short_factor` 必须给 4 对维度各一个数，现在有 1 个"
    error = refused(Proportional(share=0.1).inv_freq, 8, 1e4)
    assert str(error) == "`partial_rotary_factor` must turn at least one pair; got 0.1 of 4 pairs"
    assert error.text("zh") == "`partial_rotary_factor` 至少要让一对维度旋转；现在是 4 对的 0.1 倍"


def test_refusals_in_chinese() -> None:
    error = refused(Yarn, **{**YARN, "beta_fast": 1, "beta_slow": 32})
    assert error.text("zh") == "`beta_fast` 不能小于 beta_slow，现在 beta_fast 是 1、beta_slow 是 32；是不是写反了？"
    error = refused(Llama3, **{**LLAMA3, "high_freq_factor": 1.0})
    assert error.text("zh") == (
        "`high_freq_factor` 必须大于 low_freq_factor，现在 high_freq_factor 是 1、low_freq_factor 是 1"
    )
    error = refused(LongRope, **{**LONG, "short_factor": "1"})
    assert error.text("zh") == "`short_factor` 必须是 1 到 4096 个数的列表，现在是 1"
    error = refused(Yarn, **{**YARN, "truncate": 1})
    assert error.text("zh") == "`truncate` 必须是 true 或 false，现在是 1"
