"""The contract of every encoding in the registry: a new one is held to it by its registry line.

What a spec claims (kind, capabilities, ranges, snippet) is measured here, never repeated.
"""

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, encodings, text, views
from posviz.encodings import ENCODINGS, base
from posviz.types import MAX_LEN, Dims, Refusal, shown

DIMS = Dims(d_model=16, n_heads=2)
NAMES = list(ENCODINGS)
FOUNDATION = ["none", "sinusoidal", "learned", "rope", "alibi", "t5", "shaw"]
TOKENS = text.tokenize("abcd")
KNOBS = [
    pytest.param(name, field, id=f"{name}-{field.name}")
    for name, cls in ENCODINGS.items()
    for field in dataclasses.fields(cls)
    if "knob" in field.metadata
]


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


def sample_values(field: dataclasses.Field) -> list:
    """Allowed values of a knob: the default, every choice, both ends of its range."""
    knob = field.metadata["knob"]
    if knob.choices:
        return list(knob.choices)
    if isinstance(field.default, bool):
        return [False, True]
    if isinstance(field.default, int):
        return [field.default, knob.low, knob.high]
    return [
        field.default,
        math.nextafter(knob.low, math.inf) if knob.above else knob.low,
        knob.high,
    ]


def variants(name: str) -> list[encodings.Encoding]:
    """Every encoding with its defaults, and with each knob at each sample value."""
    found = [encodings.make(name)]
    for field in dataclasses.fields(ENCODINGS[name]):
        for value in sample_values(field) if "knob" in field.metadata else ():
            try:
                spec = encodings.make(name, **{field.name: value})
                spec.build(DIMS, 8)
            except Refusal:
                continue  # a value that needs another one beside it
            if spec not in found:
                found.append(spec)
    return found


VARIANTS = [
    pytest.param(spec, id=spec.call().removeprefix("encodings.make")) for name in NAMES for spec in variants(name)
]


def mask_for(spec: encodings.Encoding) -> str:
    return "causal" if spec.needs_causal_mask else "none"


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def hooks(module, x, q, k, positions):
    """(what was added to x, queries, keys, bias) of a module at some positions."""
    turned = module.rotate(q, k, positions, positions)
    return module.embed(x, positions) - x, *turned, module.bias(*turned, positions, positions)


# ---- the registry and the specs


def test_the_registry():
    # the foundation's, in the order in which pages show them; later ones follow
    assert NAMES[: len(FOUNDATION)] == FOUNDATION
    with pytest.raises(TypeError):
        ENCODINGS["mine"] = ENCODINGS["none"]


@pytest.mark.parametrize("name", NAMES)
def test_a_spec_is_a_frozen_value_with_a_name(name):
    cls = ENCODINGS[name]
    spec = encodings.make(name)
    assert type(spec) is cls
    assert spec.name == name
    assert dataclasses.fields(cls)[0].name == "name", "caches tell specs apart by it"
    assert spec == encodings.make(name)
    assert hash(spec) == hash(encodings.make(name))
    for field in ("name", *spec.parameters()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(spec, field, getattr(spec, field))
    with pytest.raises(TypeError, match="positional"):
        cls(1.0)


def test_no_two_specs_are_equal():
    for a, b in itertools.combinations([p.values[0] for p in VARIANTS], 2):
        assert a != b
        assert a.call() != b.call(), "caches are keyed by it"


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_a_knob_with_texts_in_both_languages(name):
    for field in dataclasses.fields(ENCODINGS[name]):
        if field.name == "name":
            assert not field.init
            continue
        knob = field.metadata["knob"]
        for words in (knob.label, knob.help):
            assert words.en.strip() and words.zh.strip()
        assert re.search(r"[\u4e00-\u9fff]", knob.help.zh)
        assert not re.search(r"[\u4e00-\u9fff]", knob.label.en + knob.help.en)
        if knob.choices:
            assert field.default in knob.choices
            assert len(knob.names) in (0, len(knob.choices))
            assert all(name.en and name.zh for name in knob.names)
        elif not isinstance(field.default, bool):
            assert math.isfinite(knob.low) and math.isfinite(knob.high)
            assert knob.low <= field.default <= knob.high
            assert field.default > knob.low or not knob.above


@pytest.mark.parametrize("name", NAMES)
def test_texts_formula_and_paper(name):
    cls = ENCODINGS[name]
    assert cls.kind in ("none", "additive", "rotary", "bias")
    assert cls.title.en and cls.title.zh
    assert cls.summary.en.endswith(".") and cls.summary.zh.endswith("。")
    assert cls.formula.count("{") == cls.formula.count("}") and cls.formula.isascii()
    assert re.fullmatch(r"\d{4}\.\d{4,5}", cls.paper.arxiv)
    assert cls.paper.url == f"https://arxiv.org/abs/{cls.paper.arxiv}"
    assert str(cls.paper).endswith(f"arXiv {cls.paper.arxiv}")
    assert 2017 <= cls.paper.year <= 2026


@pytest.mark.parametrize("name", NAMES)
def test_trainable_ones_say_how_they_start(name):
    cls = ENCODINGS[name]
    assert bool(cls.starts.en) == bool(cls.starts.zh) == cls.capabilities.trainable
    if cls.starts.en:
        assert cls.starts.en.endswith(".") and cls.starts.zh.endswith("。")
        assert re.search(r"[\u4e00-\u9fff]", cls.starts.zh) and not re.search(r"[\u4e00-\u9fff]", cls.starts.en)


@pytest.mark.parametrize(
    ("name", "parameter", "std"),
    [
        ("learned", "weight", 0.02),
        ("t5", "weight", 64**-0.5),
        ("shaw", "weight", math.sqrt(2 / (33 + 16))),
        ("transformer_xl", "w_r", 0.02),
        ("conformer", "w_r", 0.02),
        ("conformer", "u", math.sqrt(6 / 20 / 3)),  # even within a bound b: b / sqrt(3)
        ("deberta", "table", 0.02),
        ("deberta", "w_q", 0.02),
        ("fire", "w2", 32**-0.5),
        ("conv", "weight", 2 / math.sqrt(128 * 64)),
    ],
)
def test_they_start_as_they_say(name, parameter, std):
    """Spread of 20 draws of a parameter beside what `starts` says in words."""
    spec = encodings.make(name)
    drawn = [
        getattr(spec.build(Dims(d_model=64, n_heads=4), 64, torch.Generator().manual_seed(s)), parameter)
        .detach()
        .flatten()
        for s in range(20)
    ]
    assert float(torch.cat(drawn).std()) == pytest.approx(std, rel=0.05)


@pytest.mark.parametrize("spec", VARIANTS)
def test_describe_says_everything_in_both_languages(spec):
    english, chinese = spec.describe(), spec.describe("zh")
    assert english == spec.describe("en")
    assert spec.title.en in english and spec.title.zh in chinese
    assert spec.summary.en in english and spec.summary.zh in chinese
    for description in (english, chinese):
        assert str(spec.paper) in description
        for parameter in spec.parameters():
            assert f"{parameter}=" in description


def test_describe_whole():
    assert encodings.make("rope", base=500_000.0).describe() == (
        "RoPE: Queries and keys are turned by their own position; in their product only the "
        "difference of positions is left. Parameters: base=500000, pairing=half, "
        "partial_rotary_factor=1. Su et al. 2021, RoFormer: Enhanced Transformer with Rotary "
        "Position Embedding, arXiv 2104.09864"
    )
    none = encodings.make("none")
    assert none.describe("zh") == f"{none.title.zh}：{none.summary.zh}{none.paper}"
    assert "参数：base=500000，pairing=half，partial_rotary_factor=1。" in encodings.make(
        "rope", base=500_000.0
    ).describe("zh")


@pytest.mark.parametrize("spec", VARIANTS)
def test_call_evaluates_back_to_the_spec(spec):
    again = eval(spec.call(), {"encodings": encodings})
    assert again == spec
    assert again.call() == spec.call()


def test_the_same_number_in_another_type_is_the_same_spec():
    for same in (10_000, np.float64(10_000), np.int64(10_000), np.float32(10_000)):
        spec = encodings.make("rope", base=same)
        assert type(spec.base) is float
        assert spec.call() == encodings.make("rope", base=10_000.0).call()
    assert type(encodings.make("t5", num_buckets=np.int32(16)).num_buckets) is int


# ---- refusals


def type_error_values(field: dataclasses.Field) -> list:
    knob = field.metadata["knob"]
    if knob.choices:
        return ["", "nonsense", knob.choices[0].upper(), None, 1, 1.0, True, [knob.choices[0]]]
    if isinstance(field.default, bool):
        return [0, 1, "True", None, 1.0, np.True_]
    wrong = ["1", "", None, True, [1], 1j, "<script>alert(1)</script>", "x" * 500]
    return [*wrong, 2.0, 2.5] if isinstance(field.default, int) else wrong


def outside_values(field: dataclasses.Field) -> list:
    knob = field.metadata["knob"]
    if knob.choices or isinstance(field.default, bool):
        return []
    endless = [math.nan, math.inf, -math.inf, np.nan, 10**400, -(10**400), 10**5000]
    if isinstance(field.default, int):
        return [knob.low - 1, knob.high + 1, -(2**63), *endless]
    below = knob.low if knob.above else math.nextafter(knob.low, -math.inf)
    return [below, -1.0, math.nextafter(knob.high, math.inf), *endless]


@pytest.mark.parametrize(("name", "field"), KNOBS)
def test_every_knob_refuses_what_lies_outside(name, field):
    knob = field.metadata["knob"]
    for value in [*type_error_values(field), *outside_values(field)]:
        error = refused(encodings.make, name, **{field.name: value})
        if knob.choices or isinstance(field.default, bool):
            allowed = ", ".join(knob.choices or ("True", "False"))
            english = f"`{field.name}` must be one of {allowed}, got {shown(value)}"
            chinese = f"`{field.name}` 只能是 {allowed} 之一，现在是 {shown(value)}"
        else:
            got = shown(repr(value) if isinstance(value, str) else value)
            if isinstance(field.default, int):
                span = f"a whole number from {knob.low} to {knob.high}"
                spanne = f"是 {knob.low} 到 {knob.high} 的整数"
            else:
                word, wort = ("above", "大于") if knob.above else ("from", "不小于")
                span = f"a finite number {word} {knob.low:g} and up to {knob.high:g}"
                spanne = f"是{wort} {knob.low:g}、不大于 {knob.high:g} 的有限数"
            english = f"`{field.name}` must be {span}, got {got}"
            chinese = f"`{field.name}` 必须{spanne}，现在是 {got}"
        assert str(error) == english
        assert error.text("zh") == chinese
        assert error.field == field.name


@pytest.mark.parametrize(("name", "field"), KNOBS)
@given(value=st.floats() | st.integers() | st.text(max_size=8) | st.none() | st.booleans())
def test_anything_for_a_knob_is_taken_or_refused(name, field, value):
    try:
        spec = encodings.make(name, **{field.name: value})
    except Refusal as error:
        assert error.field in dataclasses.asdict(encodings.make(name))
        assert str(error).isprintable() and len(str(error)) < 200
        return
    kept = getattr(spec, field.name)
    assert kept == value
    assert type(kept) is type(field.default)
    knob = field.metadata["knob"]
    if isinstance(kept, float | int) and not isinstance(kept, bool):
        assert knob.low <= kept <= knob.high
    try:
        module = spec.build(DIMS, 4)
    except Refusal:
        return
    x, q = random(3, 16), random(2, 3, 8)
    assert all(torch.isfinite(part).all() for part in hooks(module, x, q, q, range(3)))


def test_refusals_as_they_are_read():
    error = refused(encodings.make, "rope", base=1)
    assert str(error) == "`base` must be a finite number above 1 and up to 1e+12, got 1"
    assert error.text("zh") == "`base` 必须是大于 1、不大于 1e+12 的有限数，现在是 1"
    error = refused(encodings.make, "sinusoidal", layout="halved")
    assert str(error) == "`layout` must be one of interleaved, halves, tensor2tensor, fairseq, got halved"
    assert error.text("zh") == "`layout` 只能是 interleaved, halves, tensor2tensor, fairseq 之一，现在是 halved"
    error = refused(encodings.make, "t5", num_buckets=True)
    assert str(error) == "`num_buckets` must be a whole number from 2 to 512, got True"


@pytest.mark.parametrize("name", NAMES)
def test_unknown_parameters_are_refused(name):
    known = ", ".join(encodings.make(name).parameters())
    for unknown in ("basis", "name", "", "<b>", "self", "度"):
        error = refused(encodings.make, name, **{unknown: 1})
        assert str(error) == f"encoding {name} has no parameter `{unknown}`; it has {known or 'none'}"
        assert error.text("zh") == (f"编码 {name} 没有参数 `{unknown}`；它的参数有：{known or '无'}")


@pytest.mark.parametrize("unknown", ["rotary", "", "RoPE", None, 3, [], "x" * 99, "\x00"])
def test_unknown_encodings_are_refused(unknown):
    error = refused(encodings.make, unknown)
    assert str(error) == (f"`encoding` must be one of {', '.join(NAMES)}, got {shown(unknown)}")
    assert error.text("zh") == (f"`encoding` 只能是 {', '.join(NAMES)} 之一，现在是 {shown(unknown)}")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [0, -1, MAX_LEN + 1, 1.0, "8", None, True, math.inf])
def test_max_len_is_checked(name, bad):
    error = refused(encodings.make(name).build, DIMS, bad)
    got = repr(bad)
    assert str(error) == f"`max_len` must be a whole number from 1 to 8192, got {got}"
    assert error.text("zh") == f"`max_len` 必须是 1 到 8192 的整数，现在是 {got}"


@pytest.mark.parametrize(
    ("name", "given", "english", "chinese"),
    [
        (
            "t5",
            {"num_buckets": 7},
            "`num_buckets` must be even and at least 4 for two-sided T5, got 7",
            "双向 T5 要求 `num_buckets` 为偶数且不小于 4，现在是 7",
        ),
        (
            "t5",
            {"num_buckets": 2},
            "`num_buckets` must be even and at least 4 for two-sided T5, got 2",
            "双向 T5 要求 `num_buckets` 为偶数且不小于 4，现在是 2",
        ),
        (
            "t5",
            {"max_distance": 8},
            "`max_distance` must be above the 8 distances that have their own bucket, got 8",
            "`max_distance` 必须大于独占一桶的距离数 8，现在是 8",
        ),
        (
            "t5",
            {"max_distance": 16, "bidirectional": False},
            "`max_distance` must be above the 16 distances that have their own bucket, got 16",
            "`max_distance` 必须大于独占一桶的距离数 16，现在是 16",
        ),
    ],
)
def test_rules_between_parameters(name, given, english, chinese):
    error = refused(encodings.make, name, **given)
    assert str(error) == english
    assert error.text("zh") == chinese


def test_the_smallest_and_the_largest_t5():
    for spec in (
        encodings.make("t5", num_buckets=4, max_distance=2),
        encodings.make("t5", num_buckets=2, max_distance=2, bidirectional=False),
        encodings.make("t5", num_buckets=3, max_distance=2, bidirectional=False),
        encodings.make("t5", num_buckets=512, max_distance=129),
        encodings.make("t5", num_buckets=512, max_distance=100_000, bidirectional=False),
    ):
        buckets = spec.buckets(torch.arange(-100_001, 100_002))
        assert buckets.min() == 0
        assert buckets.max() == spec.num_buckets - 1


@pytest.mark.parametrize(
    ("name", "given", "dims", "english", "chinese"),
    [
        (
            "sinusoidal",
            {},
            (5, 1),
            "`d_model` must be even for sinusoidal (sines and cosines come in pairs), got 5; try 6",
            "正弦编码要求 `d_model` 为偶数（正弦、余弦成对出现），现在是 5；可以试试 6",
        ),
        (
            "sinusoidal",
            {},
            (1023, 3),
            "`d_model` must be even for sinusoidal (sines and cosines come in pairs), got 1023; try 1020",
            "正弦编码要求 `d_model` 为偶数（正弦、余弦成对出现），现在是 1023；可以试试 1020",
        ),
        (
            "rope",
            {},
            (28, 4),
            "`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32",
            "RoPE 要求 `d_head` 为偶数，现在是 7（d_model 28 / 4 个头）；可以试试 d_model 32",
        ),
        (
            "rope",
            {},
            (1, 1),
            "`d_head` must be even for RoPE, got 1 (d_model 1 / n_heads 1); try d_model 2",
            "RoPE 要求 `d_head` 为偶数，现在是 1（d_model 1 / 1 个头）；可以试试 d_model 2",
        ),
        (
            "rope",
            {"partial_rotary_factor": 0.4},
            (32, 4),
            "`partial_rotary_factor` must turn an even number of dimensions, at least 2; got 0.4 of d_head 8 = 3",
            "`partial_rotary_factor` 必须让偶数个、至少 2 个维度旋转；现在 d_head 8 的 0.4 倍是 3",
        ),
        (
            "rope",
            {"partial_rotary_factor": 0.01},
            (32, 4),
            "`partial_rotary_factor` must turn an even number of dimensions, at least 2; got 0.01 of d_head 8 = 0",
            "`partial_rotary_factor` 必须让偶数个、至少 2 个维度旋转；现在 d_head 8 的 0.01 倍是 0",
        ),
    ],
)
def test_sizes_an_encoding_cannot_have(name, given, dims, english, chinese):
    spec = encodings.make(name, **given)
    error = refused(spec.build, Dims(d_model=dims[0], n_heads=dims[1]))
    assert str(error) == english
    assert error.text("zh") == chinese


# Sizes that split into heads, (n_heads, d_head).
SIZES = st.integers(1, 64).flatmap(lambda h: st.tuples(st.just(h), st.integers(1, 1024 // h)))


@given(st.sampled_from(NAMES), SIZES)
def test_the_size_a_refusal_suggests_works(name, size):
    n_heads, d_head = size
    spec = encodings.make(name)
    try:
        spec.fits(Dims(d_model=n_heads * d_head, n_heads=n_heads))
    except Refusal as error:
        suggested = int(re.search(r"try (?:d_model )?(\d+)$", str(error))[1])
        spec.fits(Dims(d_model=suggested, n_heads=n_heads))


def test_direct_use_of_a_spec_is_checked_too():
    assert str(refused(encodings.make("alibi").slopes, 65)) == ("`n_heads` must be a whole number from 1 to 64, got 65")
    assert str(refused(encodings.make("sinusoidal").table, [0], 7)) == (
        "`d_model` must be even for sinusoidal (sines and cosines come in pairs), got 7; try 8"
    )
    assert str(refused(encodings.make("rope").inv_freq, 65)) == ("`d_head` must be even for RoPE, got 65")
    for unreal in (torch.tensor([1.5]), torch.tensor([True])):
        kind = str(unreal.dtype).removeprefix("torch.")
        for use in (encodings.make("t5").buckets, encodings.make("shaw").index):
            assert str(refused(use, unreal)) == f"positions must be whole numbers, got {kind}"


# ---- modules: what is claimed is measured


@pytest.mark.parametrize("spec", VARIANTS)
def test_the_kind_is_the_hook_that_does_something(spec):
    module = spec.build(DIMS, 8)
    x, q, k = random(6, 16), random(2, 6, 8, seed=1), random(2, 6, 8, seed=2)
    with torch.no_grad():
        added, q_turned, k_turned, bias = hooks(module, x, q, k, range(6))
    found = {
        "additive": bool(added.any()),
        "rotary": not (torch.equal(q_turned, q) and torch.equal(k_turned, k)),
        "bias": bool(bias.any()),
    }
    assert [kind for kind, present in found.items() if present] == ([] if spec.kind == "none" else [spec.kind])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_dtypes(name, length, dtype):
    module = encodings.make(name).build(DIMS, 8).to(dtype)
    x = random(3, length, 16, dtype=dtype)  # a batch of three
    q, k = random(3, 2, length, 8, dtype=dtype), random(3, 2, length, 8, seed=1, dtype=dtype)
    at = torch.arange(length)
    assert module.embed(x).shape == x.shape
    assert torch.equal(module.embed(x), module.embed(x, at)), "positions start at 0"
    turned = module.rotate(q, k, at, at)
    bias = module.bias(*turned, at, at)
    assert [t.shape for t in turned] == [q.shape, k.shape]
    assert bias.expand(3, 2, length, length).shape == (3, 2, length, length)
    assert {t.dtype for t in (module.embed(x), *turned, bias)} == {dtype}


@pytest.mark.parametrize("name", NAMES)
def test_more_keys_than_queries(name):
    module = encodings.make(name).build(DIMS, 16)
    q, k = random(2, 1, 8), random(2, 9, 8, seed=1)
    turned = module.rotate(q, k, [8], range(9))
    bias = module.bias(*turned, [8], range(9)).expand(2, 1, 9)
    everyone = module.rotate(q.expand(-1, 9, -1), k, range(9), range(9))
    whole = module.bias(*everyone, range(9), range(9)).expand(2, 9, 9)
    torch.testing.assert_close(turned[0][:, 0], everyone[0][:, 8])
    torch.testing.assert_close(turned[1], everyone[1])
    torch.testing.assert_close(bias[:, 0], whole[:, 8])


@pytest.mark.parametrize("spec", VARIANTS)
def test_the_same_seed_builds_the_same_module(spec):
    def seeded(seed):
        return spec.build(DIMS, 8, torch.Generator().manual_seed(seed)).state_dict()

    before = torch.get_rng_state()
    one, same, default, other = seeded(0), seeded(0), spec.build(DIMS, 8).state_dict(), seeded(1)
    assert torch.equal(torch.get_rng_state(), before), "nobody's global seed is touched"
    for key in one:
        assert torch.equal(one[key], same[key])
        assert torch.equal(one[key], default[key])
        assert not torch.equal(one[key], other[key]) or one[key].unique().numel() == 1, "drawn, or a constant"
    assert not one or any(not torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("spec", VARIANTS)
def test_trainable_means_parameters_and_each_learns(spec):
    module = spec.build(DIMS, 8).double()
    parameters = list(module.parameters())
    assert bool(parameters) == spec.capabilities.trainable
    x, q, k = random(8, 16), random(2, 8, 8, seed=1), random(2, 8, 8, seed=2)
    hidden = module.embed(x)
    turned = module.rotate(q, k, range(8), range(8))
    scores = turned[0] @ turned[1].mT + module.bias(*turned, range(8), range(8))
    loss = (hidden * random(8, 16, seed=3)).sum() + (scores * random(2, 8, 8, seed=4)).sum()
    if parameters:
        loss.backward()
    for parameter in parameters:
        assert torch.isfinite(parameter.grad).all()
        assert parameter.grad.any()


def test_how_many_parameters():
    def count(name, **given):
        module = encodings.make(name, **given).build(Dims(d_model=64, n_heads=4), 512)
        return sum(p.numel() for p in module.parameters())

    assert count("learned") == 512 * 64
    assert count("t5") == 32 * 4
    assert count("shaw") == (2 * 16 + 1) * 16
    assert [count(name) for name in ("none", "sinusoidal", "rope", "alibi")] == [0, 0, 0, 0]


def scores_of_equal_tokens(spec, start):
    """(H, 7, 7) scores of seven equal tokens that stand at start .. start + 6."""
    module = spec.build(DIMS, 8192).double()
    at = torch.arange(start, start + 7)
    w_q, w_k = random(16, 16, seed=4) / 4, random(16, 16, seed=5) / 4
    with torch.no_grad():
        hidden = module.embed(random(1, 16, seed=3).expand(7, -1), at)
        q, k = (attention.split_heads(hidden @ w, 2) for w in (w_q, w_k))
        q, k = module.rotate(q, k, at, at)
        return (q @ k.mT * spec.scale(8) + module.bias(q, k, at, at)).numpy()


@pytest.mark.parametrize("spec", VARIANTS)
def test_relative_means_that_scores_of_equal_tokens_depend_on_the_difference(spec):
    # the window 250 .. 256 crosses the end of a row in every grid, 6000 lies beyond every threshold
    windows = [scores_of_equal_tokens(spec, start) for start in (0, 250, 6000)]
    spread = max(
        np.ptp(np.concatenate([np.diagonal(w, k, axis1=1, axis2=2) for w in windows], axis=-1), axis=-1).max()
        for k in range(-6, 7)
    )
    if spec.capabilities.relative:
        assert spread < 1e-9
    else:
        assert spread > 1e-7


@pytest.mark.parametrize("spec", VARIANTS)
def test_unbounded_means_defined_beyond_max_len(spec):
    module = spec.build(DIMS, 8)
    x, q = random(3, 16), random(2, 3, 8)
    with torch.no_grad():
        assert all(torch.isfinite(part).all() for part in hooks(module, x, q, q, [0, 3, 7]))
        for beyond in (8, 131_071):
            if spec.capabilities.unbounded:
                parts = hooks(module, x, q, q, [0, 7, beyond])
                assert all(torch.isfinite(part).all() for part in parts)
            else:
                error = refused(hooks, module, x, q, q, [0, 7, beyond])
                assert str(error) == (f"position {beyond} lies beyond a learned table of 8 rows; allowed are 0 to 7")


@pytest.mark.parametrize("spec", VARIANTS)
def test_directional_means_that_a_sentence_read_backwards_differs(spec):
    if spec.needs_causal_mask:
        return  # says nothing without a mask; refused, see test_attention
    there = attention.attend(TOKENS, spec, DIMS)
    back = attention.attend(text.tokenize(TOKENS.text[::-1]), spec, DIMS)
    difference = np.abs(there.output - back.output[::-1]).max()
    if not spec.capabilities.directional:
        assert difference < 1e-12
    else:
        assert difference > 1e-7


@pytest.mark.parametrize("spec", VARIANTS)
def test_content_means_that_what_is_added_depends_on_it(spec):
    module = spec.build(DIMS, 8).double()
    with torch.no_grad():
        one = module.bias(random(2, 5, 8), random(2, 5, 8, seed=1), range(5), range(5))
        two = module.bias(random(2, 5, 8, seed=2), random(2, 5, 8, seed=3), range(5), range(5))
        added = [module.embed(x) - x for x in (random(5, 16), random(5, 16, seed=1))]
    depends = not torch.equal(one, two) or not torch.allclose(*added, rtol=0, atol=1e-12)
    assert depends == spec.capabilities.content


def test_capabilities_as_they_are_taught():
    def table(what):
        return [name for name in FOUNDATION if getattr(ENCODINGS[name].capabilities, what)]

    assert table("trainable") == ["learned", "t5", "shaw"]
    assert table("relative") == ["none", "rope", "alibi", "t5", "shaw"]
    assert table("unbounded") == ["none", "sinusoidal", "rope", "alibi", "t5", "shaw"]
    assert table("directional") == ["sinusoidal", "learned", "rope", "t5", "shaw"]
    assert table("content") == ["shaw"]


@pytest.mark.parametrize("spec", VARIANTS)
def test_the_scale_is_the_papers(spec):
    if spec.name in FOUNDATION:  # another paper may choose another scale: its own tests say so
        assert spec.scale(64) == (1.0 if spec.name == "t5" else 0.125)
        assert spec.needs_causal_mask == (spec.name == "alibi" and spec.causal)


# ---- pictures and snippets


PICTURES = [pytest.param(p.values[0], view, id=f"{view}{p.id}") for p in VARIANTS for view in p.values[0].pictures]


def run_snippet(code: str) -> np.ndarray:
    names: dict = {}
    exec(compile(code, "snippet", "exec"), names)
    return names["values"].detach().numpy()


@pytest.mark.parametrize(("spec", "view"), PICTURES)
def test_the_snippet_reproduces_the_picture(spec, view):
    for dims, length, seed in (
        (DIMS, 9, 0),
        (Dims(d_model=24, n_heads=3), 1, 7),
        (Dims(d_model=64, n_heads=4), 33, 2**31 - 1),
    ):
        try:
            spec.fits(dims)
        except Refusal:
            assert dims.d_model == 24, "the others suit every encoding"
            continue
        picture = views.picture(spec, dims, length, view=view, seed=seed)
        before = torch.get_rng_state()
        values = run_snippet(spec.snippet(dims, length, view, seed))
        assert torch.equal(torch.get_rng_state(), before)
        if picture.view == "bias":
            drawn = np.stack([picture.values(head) for head in range(dims.n_heads)])
        else:
            drawn = picture.values()
        assert values.shape == drawn.shape
        if view == "angle":  # -pi and pi are the same angle, and rounding may land on either
            turns = np.remainder(values - drawn + np.pi, 2 * np.pi) - np.pi
            np.testing.assert_allclose(turns, 0, atol=1e-9)
        else:
            np.testing.assert_allclose(values, drawn, rtol=1e-12, atol=1e-12, equal_nan=True)


def test_an_encoding_without_pictures_has_no_snippet():
    assert encodings.make("none").pictures == ()
    with pytest.raises(NotImplementedError):
        encodings.make("none").snippet(DIMS, 4, "table", 0)


@pytest.mark.parametrize(("spec", "view"), PICTURES)
def test_explain_ends_with_the_cell(spec, view):
    picture = views.picture(spec, DIMS, 8, view=view)
    row, col = min(5, picture.shape[0] - 1), 1
    value = float(picture.values(1 if view == "bias" else 0)[row, col])
    latex = spec.explain(DIMS, view, row, col, value, head=1)
    assert rf"\mathbf{{{value:.6f}}}" in latex
    assert latex.count("{") == latex.count("}")
    assert latex.isascii() and "\n" not in latex


@pytest.mark.parametrize(
    ("spec", "view", "cell", "latex"),
    [
        (
            encodings.make("sinusoidal"),
            "table",
            (3, 5),
            r"PE(3, 5) = \cos\!\left(3 \,/\, 10000^{4/16}\right) = \cos\!\left(3 / 10\right)"
            r" = \cos(0.3) = \mathbf{0.955336}",
        ),
        (
            encodings.make("sinusoidal", layout="halves", base=100.0),
            "table",
            (3, 4),
            r"PE(3, 4) = \sin\!\left(3 \,/\, 100^{8/16}\right) = \sin\!\left(3 / 10\right)"
            r" = \sin(0.3) = \mathbf{0.295520}",
        ),
        (
            encodings.make("rope"),
            "cos",
            (3, 1),
            r"\cos(3\,\theta_{1}) = \cos(3 \cdot 10000^{-2/8} = 3 \cdot 0.1) = \mathbf{0.955336}",
        ),
        (
            encodings.make("rope"),
            "angle",
            (4, 0),
            r"4\,\theta_{0} = 4 \cdot 10000^{-0/8} = 4 \cdot 1 = 4.000000"
            r" \equiv \mathbf{-2.283185} \pmod{2\pi}",
        ),
        (
            encodings.make("alibi"),
            "bias",
            (1, 4),
            r"b_{0}(1, 4) = -0.0625 \cdot |1 - 4| = \mathbf{-0.187500}",
        ),
        (
            encodings.make("alibi", causal=True),
            "bias",
            (4, 1),
            r"b_{0}(4, 1) = 0.0625 \cdot (1 - 4) = \mathbf{-0.187500}",
        ),
    ],
    ids=range(6),
)
def test_explain_as_it_is_read(spec, view, cell, latex):
    value = float(views.picture(spec, DIMS, 8, view=view).values()[cell])
    assert spec.explain(DIMS, view, *cell, value) == latex


def test_explain_names_the_bucket_and_the_distance():
    value = float(views.picture(encodings.make("t5"), DIMS, 64).values(1)[40, 2])
    assert encodings.make("t5").explain(DIMS, "bias", 40, 2, value, 1) == (
        r"b_{1}[\mathrm{bucket}(2 - 40)] = b_{1}[\mathrm{bucket}(-38)]"
        rf" = b_{{1}}[12] = \mathbf{{{value:.6f}}}"
    )
    assert encodings.make("shaw").explain(DIMS, "distance_table", 13, 2, 0.5) == (r"a_{-3}[2] = \mathbf{0.500000}")


# ---- claims


CLAIMING = [p for p in VARIANTS if type(p.values[0]).claims is not encodings.Encoding.claims]


@pytest.mark.parametrize("length", [1, 2, 3, 40])
@pytest.mark.parametrize("spec", CLAIMING)
def test_every_claim_holds(spec, length):
    module = spec.build(DIMS, length, torch.Generator().manual_seed(1))
    claims = spec.claims(module, length)
    assert 2 <= len(claims) <= 4, "a page proves itself by two to four numbers"
    for claim in claims:
        assert claim.holds in (None, True)
        assert isinstance(claim.value, int | float)
        assert math.isfinite(claim.value) or length == 1
        for words in (claim.label, claim.expected):
            assert words.en.strip() and words.zh.strip()
            assert "{" not in words.en + words.zh, "filled in"
        assert re.search(r"[\u4e00-\u9fff]", claim.label.zh)


def test_which_encodings_claim_something():
    assert {p.values[0].name for p in CLAIMING} >= set(FOUNDATION) - {"none"}


def test_claims_need_no_square_of_the_largest_size():
    dims = Dims(d_model=1024, n_heads=64)
    for name in NAMES:
        spec = encodings.make(name)
        module = spec.build(dims, 2048)
        assert all(claim.holds is not False for claim in spec.claims(module, 2048))


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("sinusoidal", {"table": lambda self, at, d: torch.ones(len(at), d, dtype=torch.float64)}),
        ("rope", {"rotate": lambda self, x, at: x * (1 + torch.tensor(at)[:, None])}),
    ],
)
def test_a_false_claim_is_seen(monkeypatch, name, broken):
    for method, wrong in broken.items():
        monkeypatch.setattr(ENCODINGS[name], method, wrong)
    spec = encodings.make(name)
    assert False in [claim.holds for claim in spec.claims(spec.build(DIMS, 8), 8)]


def test_a_false_alibi_is_seen(monkeypatch):
    spec = encodings.make("alibi")
    module = spec.build(DIMS, 8)
    monkeypatch.setattr(module, "bias", lambda q, k, at, to: torch.zeros(2, len(at), len(to)))
    assert False in [claim.holds for claim in spec.claims(module, 8)]


# ---- properties of single encodings


@given(st.integers(1, 32).map(lambda n: 2 * n), st.floats(1.0000001, 1e12), st.integers(0, 10**6))
def test_every_sinusoidal_row_has_the_squared_norm_half_d(d_model, base_, position):
    for layout in ("interleaved", "halves"):
        row = encodings.make("sinusoidal", base=base_, layout=layout).table([position], d_model)[0]
        assert row.square().sum().item() == pytest.approx(d_model / 2, rel=1e-13)


@given(st.integers(1, 32).map(lambda n: 2 * n), st.floats(1.0000001, 1e12), st.integers(0, 10**6))
def test_the_layouts_are_permutations_of_each_other(d_model, base_, position):
    interleaved = encodings.make("sinusoidal", base=base_).table([position], d_model)
    halves = encodings.make("sinusoidal", base=base_, layout="halves").table([position], d_model)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(interleaved[:, order], halves)


@given(st.integers(1, 64))
def test_alibi_slopes(n_heads):
    slopes = encodings.make("alibi").slopes(n_heads)
    assert slopes.shape == (n_heads,)
    assert slopes.dtype == torch.float64
    assert bool((slopes > 0).all()) and bool((slopes < 1).all())
    assert len(set(slopes.tolist())) == n_heads, "every head has its own"
    below = 2 ** (n_heads.bit_length() - 1)
    exact = [2.0 ** (-8 * h / below) for h in range(1, below + 1)]
    exact += [2.0 ** (-4 * h / below) for h in range(1, 2 * below, 2)][: n_heads - below]
    np.testing.assert_allclose(slopes, exact, rtol=1e-15)


def test_alibi_halves_every_ln2_by_slope():
    bias = views.picture(encodings.make("alibi"), Dims(d_model=8, n_heads=1), 512).values()
    # slope 1/256: exp(-k/256) is 1/2 at k = 177.4
    assert math.exp(bias[177, 0]) > 0.5 > math.exp(bias[178, 0])
    np.testing.assert_array_equal(bias, bias.T)
    causal = views.picture(encodings.make("alibi", causal=True), Dims(d_model=8, n_heads=1), 512)
    lower = np.tril_indices(512)
    np.testing.assert_array_equal(causal.values()[lower], bias[lower])
    assert np.isnan(causal.values()[np.triu_indices(512, 1)]).all()


T5_SHAPES = st.tuples(st.integers(2, 32), st.integers(2, 400), st.booleans())


def exact_bucket(distance: int, per_side: int, max_distance: int) -> int:
    """The bucket of a distance by its definition, one inequality between whole numbers at a time.

    e + k for the largest k < L with e (m/e)^(k/L) <= n, that is m^k e^L <= n^L e^k.
    """
    e = per_side // 2
    if distance < e:
        return distance
    levels, k = per_side - e, 0
    while k + 1 < levels and max_distance ** (k + 1) * e**levels <= distance**levels * e ** (k + 1):
        k += 1
    return e + k


@given(T5_SHAPES)
def test_t5_buckets_are_exact_and_monotone(shape):
    half, max_distance, two_sided = shape
    num_buckets = 2 * half if two_sided else half
    try:
        spec = encodings.make("t5", num_buckets=num_buckets, max_distance=max_distance, bidirectional=two_sided)
    except Refusal:
        assert max_distance <= half // 2
        return
    reach = max_distance + 50
    got = spec.buckets(torch.arange(-reach, reach + 1))
    past, future = got[: reach + 1].flip(0), got[reach:]
    assert past.tolist() == [exact_bucket(n, half, max_distance) for n in range(reach + 1)]
    assert bool((past.diff() >= 0).all())
    assert got.min() >= 0 and got.max() < num_buckets
    if two_sided:
        assert torch.equal(future[1:], past[1:] + half)
    else:
        assert not future.any(), "everything after the query shares bucket 0"


def test_t5_buckets_keep_the_shape():
    spec = encodings.make("t5")
    for relative in (torch.tensor(-64), torch.zeros(2, 0, 3, dtype=torch.int32), np.arange(-3, 3)):
        got = spec.buckets(relative)
        assert got.dtype == torch.int64
        assert got.shape == relative.shape
    assert spec.buckets(torch.tensor([-128, 127], dtype=torch.int8)).tolist() == [15, 31]
    assert spec.buckets([-64, 64]).tolist() == [14, 30]


@given(st.integers(1, 4096), st.lists(st.integers(-10_000, 10_000), max_size=20))
def test_shaw_clips(reach, distances):
    rows = encodings.make("shaw", max_relative=reach).index(distances)
    assert rows.tolist() == [min(max(d, -reach), reach) + reach for d in distances]


def test_shaw_is_the_vectors_product():
    spec = encodings.make("shaw", max_relative=2)
    module = spec.build(DIMS, 8).double()
    q, k = random(2, 6, 8), random(2, 6, 8, seed=1)
    with torch.no_grad():
        bias = module.bias(q, k, range(6), range(6))
        for h, m, n in itertools.product(range(2), range(6), range(6)):
            vector = module.weight[min(max(n - m, -2), 2) + 2]
            torch.testing.assert_close(bias[h, m, n], q[h, m] @ vector / math.sqrt(8))


def test_a_learned_row_is_looked_up_exactly():
    module = encodings.make("learned").build(DIMS, 8)
    with torch.no_grad():
        rows = module.embed(torch.zeros(3, 16), [7, 0, 7])
    assert torch.equal(rows, module.weight[[7, 0, 7]])


def test_untrained_tables_have_the_papers_spread():
    dims = Dims(d_model=64, n_heads=4)
    for name, std in (
        ("learned", 0.02),
        ("t5", 64**-0.5),
        ("shaw", math.sqrt(2 / (33 + 16))),
    ):
        weight = encodings.make(name).build(dims, 512).weight.detach()
        # a standard deviation of n numbers is off by about 1/sqrt(2n)
        assert weight.std().item() == pytest.approx(std, rel=4 / math.sqrt(2 * weight.numel()))
        assert abs(weight.mean().item()) < 4 * std / math.sqrt(weight.numel())


def test_the_defaults_of_a_new_encoding():
    """A spec without hooks of its own is the identity; pages can show it at once."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Mine(encodings.Encoding):
        name: str = dataclasses.field(default="mine", init=False)
        kind = "none"
        gain: float = base.knob(1.0, base.BASE_LABEL, base.BASE_HELP, low=0.0, high=2.0)

    module = Mine().build(DIMS)
    x, q = random(4, 16), random(2, 4, 8)
    assert torch.equal(module.embed(x), x)
    assert module.rotate(q, q, range(4), range(4))[0] is q
    assert module.bias(q, q, range(4), range(4)).item() == 0
    assert module.max_len == 512
    assert Mine().explain(DIMS, "bias", 1, 2, 0.5) == r"\mathrm{mine}_{0}(1, 2) = \mathbf{0.500000}"
    assert str(refused(Mine, gain=2.5)) == ("`gain` must be a finite number from 0 and up to 2, got 2.5")
