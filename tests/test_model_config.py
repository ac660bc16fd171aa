"""Reading a model's config.json: transformers' numbers for real files, every spelling, and hostile text."""

import inspect
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posviz import attention, encodings, text
from posviz.encodings import model_config
from posviz.encodings.config_json import MAX_BYTES
from posviz.encodings.diagnosis import READ, diagnose
from posviz.encodings.known_models import known_models
from posviz.encodings.model_config import essential, ropes_of
from posviz.rope_scaling import SCALINGS
from posviz.types import Dims, Refusal

KNOWN = known_models()
LLAMA = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 4096}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


# ---- transformers


def theirs(config: dict, layer: str, seq_len: int | None) -> tuple[np.ndarray, float]:
    """transformers' frequencies and attention factor for a file's settings."""
    config = json.loads(json.dumps(config))
    config = config.get("text_config", config)
    known = config["model_type"] in CONFIG_MAPPING  # InternLM2 brings its own code, a Llama
    cls = CONFIG_MAPPING[config["model_type"]] if known else LlamaConfig
    if config["model_type"] in ("qwen2_vl", "qwen2_5_vl"):
        cls = CONFIG_MAPPING[f"{config['model_type']}_text"]
    made = cls(**{key: value for key, value in config.items() if key != "model_type"})
    made.standardize_rope_params()
    given = made.rope_parameters[layer] if layer else made.rope_parameters
    if given["rope_type"] in ROPE_INIT_FUNCTIONS:
        found, factor = ROPE_INIT_FUNCTIONS[given["rope_type"]](made, "cpu", seq_len, layer_type=layer or None)
        return found.numpy(), factor
    assert given["rope_type"] == "default"
    made = made.per_layer_config[layer] if made.model_type == "gemma4_text" else made
    d_head = getattr(made, "head_dim", None) or made.hidden_size // made.num_attention_heads
    width = int(d_head * given.get("partial_rotary_factor", 1.0))
    return (1.0 / given["rope_theta"] ** (torch.arange(0, width, 2).float() / width)).numpy(), 1.0


@pytest.mark.parametrize("key", [key for key in KNOWN if key != "gpt-j-6b"])
@pytest.mark.parametrize("times", [None, 1, 4])
def test_well_known_models_are_transformers(key: str, times: int | None) -> None:
    config = KNOWN[key].config
    for layer, rope in ropes_of(config).items():
        seq_len = None if times is None else times * rope.trained_length + (times - 1)
        inv_freq, factor = theirs(config, layer, seq_len)
        np.testing.assert_allclose(rope.inv_freq(seq_len), inv_freq, rtol=1e-6)
        assert rope.attention_factor(seq_len) == pytest.approx(factor, rel=1e-6)


def test_gptj_is_transformers() -> None:
    """Its rotation is no rope_type: the table that it makes."""
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions

    rope = encodings.rope_from_config(KNOWN["gpt-j-6b"].config)
    sin, cos = create_sinusoidal_positions(50, rope.width).chunk(2, dim=1)
    np.testing.assert_allclose(rope.angles(range(50)).cos(), cos, atol=2e-6)
    np.testing.assert_allclose(rope.angles(range(50)).sin(), sin, atol=2e-6)
    assert rope.pairing == "interleaved"


@pytest.mark.parametrize(
    "model_type", sorted({*model_config.INTERLEAVED, "llama", "qwen2", "phi3", "gpt_neox", "gemma3"})
)
def test_pairings_are_those_of_the_models_code(model_type: str) -> None:
    import importlib

    folder = model_type.removesuffix("_text")
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    code = inspect.getsource(module)
    half = "x[..., : x.shape[-1] // 2]" in code
    neighbours = any(
        sign in code for sign in ("x[..., 0::2]", "x[..., ::2]", "x[:, :, :, ::2]", "view_as_complex", "[..., 1::2]")
    )
    assert neighbours if model_type in model_config.INTERLEAVED else half and not neighbours, model_type


@pytest.mark.parametrize("model_type", sorted(model_config.PARTIAL))
def test_default_shares_are_transformers(model_type: str) -> None:
    made = CONFIG_MAPPING[model_type]()
    assert made.rope_parameters["partial_rotary_factor"] == model_config.PARTIAL[model_type]


@pytest.mark.parametrize("model_type", sorted(model_config.BASE))
def test_default_bases_are_transformers(model_type: str) -> None:
    given = CONFIG_MAPPING[model_type]().rope_parameters
    full = given.get("full_attention", given)
    assert full["rope_theta"] == model_config.BASE[model_type]
    if model_type in model_config.LOCAL_BASE:
        assert given["sliding_attention"]["rope_theta"] == model_config.LOCAL_BASE[model_type]


# ---- spellings


def test_old_and_new_keys_say_the_same() -> None:
    old = encodings.rope_from_config({**LLAMA, "rope_theta": 5e5, "rope_scaling": YARN})
    new = encodings.rope_from_config({**LLAMA, "rope_parameters": {**YARN, "rope_theta": 5e5}})
    older = encodings.rope_from_config(
        {
            **LLAMA,
            "rope_theta": 5e5,
            "rope_scaling": {"type": "yarn", **{k: v for k, v in YARN.items() if k != "rope_type"}},
        }
    )
    assert old == new == older
    assert isinstance(old, encodings.Encoding) and isinstance(old, encodings.ENCODINGS["rope"])
    assert (old.d_head, old.base, old.scaling.factor, old.trained_length) == (64, 5e5, 4.0, 1024)


def test_a_hidden_size_that_no_float_can_hold_is_only_a_note() -> None:
    config = {"model_type": "llama", "head_dim": 128, "num_attention_heads": 32, "hidden_size": 10**400}
    config |= {"max_position_embeddings": 4096, "rope_theta": 1e4}
    assert encodings.rope_from_config(config).d_head == 128
    quotient = "3125" + "0" * 35 + "…"
    assert [finding.text.en for finding in diagnose(config)] == [
        f"head_dim is 128, not hidden_size / num_attention_heads = {quotient}: code that divides gets another RoPE."
    ]


def test_nested_text_configs() -> None:
    inner = {**LLAMA, "rope_theta": 2e4}
    for key in model_config.TEXT_CONFIGS:
        nested = encodings.rope_from_config({"model_type": "some_vl", "vision_config": {"head_dim": 3}, key: inner})
        assert nested == encodings.rope_from_config(inner)
    outside = {"rope_theta": 2e4, "text_config": LLAMA}
    assert encodings.rope_from_config(outside).base == 2e4


def test_layer_types_have_their_own() -> None:
    both = encodings.rope_from_config(
        {
            **LLAMA,
            "rope_parameters": {
                "full_attention": {**YARN, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                "no_rope": None,
            },
        }
    )
    assert list(both) == ["full_attention", "sliding_attention"]
    assert [rope.layer_type for rope in both.values()] == list(both)
    assert [rope.base for rope in both.values()] == [1e6, 1e4]
    assert both["full_attention"].attention_factor() > 1 == both["sliding_attention"].attention_factor()


def test_head_widths() -> None:
    assert encodings.rope_from_config({**LLAMA, "head_dim": 32}).d_head == 32
    assert encodings.rope_from_config({**LLAMA, "head_dim": None}).d_head == 64
    assert encodings.rope_from_config({**LLAMA, "head_dim": 192, "qk_rope_head_dim": 64}).d_head == 64
    gptj = encodings.rope_from_config({"n_embd": 512, "n_head": 8, "rotary_dim": 16, "n_positions": 99})
    assert (gptj.d_head, gptj.width, gptj.max_position_embeddings) == (64, 16, 99)
    assert encodings.rope_from_config({**LLAMA, "rotary_pct": 0.25}).width == 16


def test_a_models_rope_works_in_attention() -> None:
    rope = encodings.rope_from_config({**LLAMA, "hidden_size": 32, "num_attention_heads": 4, "rope_scaling": YARN})
    trace = attention.attend(text.tokenize("我爱你"), rope, Dims(d_model=32, n_heads=4), dtype=torch.float64)
    norms = np.linalg.norm(trace.q_rotated, axis=-1) / np.linalg.norm(trace.q, axis=-1)
    np.testing.assert_allclose(norms, rope.attention_factor(), rtol=1e-12)
    error = refused(rope.build, Dims(d_model=64, n_heads=4))
    assert str(error) == "this model's `d_head` is 8, got 16"
    assert error.text("zh") == "这个模型的 `d_head` 是 8，现在是 16"


@pytest.mark.parametrize("key", list(KNOWN))
def test_the_essential_part_says_all(key: str) -> None:
    known = KNOWN[key]
    assert known.source.startswith("https://") and known.seen
    noise = {"vocab_size": 5, "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 9}, **known.config}
    small = essential(noise)
    assert "vocab_size" not in small and "vision_config" not in small
    assert ropes_of(small) == ropes_of(known.config)
    assert diagnose(small) == diagnose(known.config)


# ---- refusals

BAD = [
    ({}, "num_attention_heads", "`num_attention_heads` is missing; RoPE cannot be worked out without it"),
    ({"num_attention_heads": 8}, "hidden_size", "`hidden_size` is missing; RoPE cannot be worked out without it"),
    (
        {**LLAMA, "hidden_size": "512"},
        "hidden_size",
        "`hidden_size` must be a whole number from 1 to 1048576, got '512'",
    ),
    (
        {**LLAMA, "hidden_size": 500},
        "hidden_size",
        "`hidden_size` must be a multiple of num_attention_heads where head_dim is missing, got 500 and 8",
    ),
    (
        {**LLAMA, "num_attention_heads": True},
        "num_attention_heads",
        "`num_attention_heads` must be a whole number from 1 to 8192, got True",
    ),
    ({**LLAMA, "head_dim": 65}, "d_head", "`d_head` must be even for RoPE, got 65"),
    (
        {**LLAMA, "rope_theta": "1e4"},
        "rope_theta",
        "`rope_theta` must be a finite number above 1 and up to 1e+12, got '1e4'",
    ),
    (
        {**LLAMA, "rope_theta": math.nan},
        "rope_theta",
        "`rope_theta` must be a finite number above 1 and up to 1e+12, got nan",
    ),
    ({**LLAMA, "rope_scaling": "yarn"}, "rope_scaling", "`rope_scaling` must be a JSON object, got yarn"),
    ({**LLAMA, "rope_parameters": [1]}, "rope_parameters", "`rope_parameters` must be a JSON object, got [1]"),
    (
        {**LLAMA, "rope_scaling": {"type": "magic"}},
        "rope_type",
        "`rope_type` must be one of default, linear, ntk, dynamic, yarn, llama3, longrope, proportional, got magic",
    ),
    (
        {**LLAMA, "rope_scaling": {"type": "linear"}},
        "factor",
        "`factor` is missing; RoPE cannot be worked out without it",
    ),
    (
        {**LLAMA, "rope_scaling": {**YARN, "original_max_position_embeddings": "1024"}},
        "original_max_position_embeddings",
        "`original_max_position_embeddings` must be a whole number from 1 to 2147483647, got '1024'",
    ),
    (
        {**LLAMA, "max_position_embeddings": -1},
        "max_position_embeddings",
        "`max_position_embeddings` must be a whole number from 1 to 2147483647, got -1",
    ),
    (
        {**LLAMA, "partial_rotary_factor": 0.3},
        "partial_rotary_factor",
        "`partial_rotary_factor` must turn an even number of dimensions, at least 2; got 0.3 of d_head 64 = 19",
    ),
    (
        {**LLAMA, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
        "mrope_section",
        "`mrope_section` must be three whole numbers that add up to the 32 pairs, got [16, 24, 24]",
    ),
    (
        {**LLAMA, "rope_scaling": {"type": "mrope", "mrope_section": "16"}},
        "mrope_section",
        "`mrope_section` must be a list of three whole numbers, got 16",
    ),
    (
        {**LLAMA, "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 31, "long_factor": [1.0] * 32}},
        "short_factor",
        "`short_factor` must have one number for each of the 32 pairs, got 31",
    ),
    ([LLAMA], "config", "`config` must be a JSON object, got [{'model_type': 'llama', 'hidden_size':…"),
]


@pytest.mark.parametrize(("config", "field", "sentence"), BAD, ids=range(len(BAD)))
def test_bad_files_are_refused_by_the_fields_name(config, field: str, sentence: str) -> None:
    error = refused(encodings.rope_from_config, config)
    assert (str(error), error.field) == (sentence, field)
    assert any("\u4e00" <= c <= "\u9fff" for c in error.text("zh"))


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


HOSTILE = [
    (
        " " * (MAX_BYTES + 1),
        "the file has 1,000,001 bytes; a config.json of up to 1,000,000 is read",
        "文件有 1,000,001 字节；最多读 1,000,000 字节的 config.json",
    ),
    (
        b"x" * 100_000_000,
        "the file has 100,000,000 bytes; a config.json of up to 1,000,000 is read",
        "文件有 100,000,000 字节；最多读 1,000,000 字节的 config.json",
    ),
    ("", "the text is not JSON: line 1, column 1 cannot be read", "文本不是 JSON：第 1 行第 1 列读不懂"),
    (
        '{"a": 1,\n "b": }',
        "the text is not JSON: line 2, column 7 cannot be read",
        "文本不是 JSON：第 2 行第 7 列读不懂",
    ),
    (
        "__import__('os')",
        "the text is not JSON: line 1, column 1 cannot be read",
        "文本不是 JSON：第 1 行第 1 列读不懂",
    ),
    (b"\xff\xfe\x00", "the file is not text in UTF-8", "文件不是 UTF-8 编码的文本"),
    ('{"rope_theta": NaN}', "the text holds NaN, which is not a number in JSON", "文本里有 NaN，它不是 JSON 里的数"),
    (
        '{"rope_theta": -Infinity}',
        "the text holds -Infinity, which is not a number in JSON",
        "文本里有 -Infinity，它不是 JSON 里的数",
    ),
    ('{"rope_theta": ' + "9" * 5000 + "}", "the text holds a number that is too long", "文本里有一个过长的数"),
    (deep(21), "the text is nested more than 20 levels deep", "文本嵌套超过了 20 层"),
    (deep(100_000), "the text is nested more than 20 levels deep", "文本嵌套超过了 20 层"),
    ("[" * 100_000, "the text is nested more than 20 levels deep", "文本嵌套超过了 20 层"),
    ("[1]", "`config` must be a JSON object, got [1]", "`config` 必须是 JSON 对象，现在是 [1]"),
    ("null", "`config` must be a JSON object, got None", "`config` 必须是 JSON 对象，现在是 None"),
]


@pytest.mark.parametrize(("source", "english", "chinese"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_one_sentence(source, english: str, chinese: str) -> None:
    error = refused(encodings.read_config, source)
    assert str(error) == english
    assert error.text("zh") == chinese


def test_a_good_file_is_read() -> None:
    source = json.dumps({**LLAMA, "architectures": ["X"], "a": [[1]], "名": "字"}, ensure_ascii=False)
    assert encodings.read_config(source)["名"] == "字"
    assert encodings.read_config(("\ufeff" + source).encode()) == encodings.read_config(source)
    assert encodings.read_config(deep(20))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.floats() | st.sampled_from(["yarn", "llama3", "x", "", "1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["type", "factor", "a"]), inner),
    max_leaves=6,
)


@settings(max_examples=250)
@given(
    st.dictionaries(st.sampled_from(model_config.KEYS), VALUES),
    st.dictionaries(st.sampled_from(sorted({name for names in READ.values() for name in names})), VALUES),
    st.sampled_from([*SCALINGS, "su", "mrope", None]),
)
def test_nothing_but_a_refusal_comes_of_anything(outer: dict, inner: dict, kind) -> None:
    for config in (outer, {**LLAMA, **outer}, {**LLAMA, "rope_scaling": {**inner, "rope_type": kind}}):
        try:
            found = encodings.rope_from_config(config)
        except Refusal as error:
            assert error.field
            continue
        for rope in found.values() if isinstance(found, dict) else [found]:
            for seq_len in (None, 1, 10**6):
                assert torch.isfinite(rope.inv_freq(seq_len)).all()
            assert math.isfinite(rope.attention_factor())
        diagnose(config)


# ---- diagnosis


def findings(config: dict, lang: str = "en") -> list[tuple[bool, str]]:
    return [(finding.suspicious, finding.text(lang)) for finding in diagnose(config)]


BASED = {**LLAMA, "rope_theta": 10_000.0}
DIAGNOSES = [
    (BASED, []),
    ({**BASED, "rope_scaling": YARN}, []),
    (
        LLAMA,
        [
            (
                False,
                "The file does not say the base (rope_theta); the model's default, 10000, is used.",
                "文件没有写 base（rope_theta）；用的是模型的默认值 10000。",
            )
        ],
    ),
    (
        {**BASED, "rope_scaling": {**YARN, "factor": 8.0}},
        [
            (
                True,
                "factor 8 × original length 1024 = 8192, but max_position_embeddings says 4096.",
                "factor 8 × 原来的长度 1024 = 8192，而 max_position_embeddings 写的是 4096。",
            )
        ],
    ),
    (
        {**BASED, "rope_scaling": {"type": "yarn", "factor": 1.0}},
        [
            (
                True,
                "original_max_position_embeddings is missing; max_position_embeddings, 4096, is taken for it, so the text counts as not yet extended.",
                "缺少 original_max_position_embeddings；用 max_position_embeddings（4096）代替，等于认为文本还没有加长。",
            ),
            (True, "factor is 1: nothing is scaled.", "factor 是 1：什么也没有缩放。"),
        ],
    ),
    (
        {**BASED, "rope_scaling": {**YARN, "original_max_position_embeddings": 8192}},
        [
            (
                True,
                "original_max_position_embeddings, 8192, is longer than max_position_embeddings, 4096.",
                "original_max_position_embeddings（8192）比 max_position_embeddings（4096）还长。",
            )
        ],
    ),
    (
        {**BASED, "rope_scaling": {"type": "linear", "factor": 2.0, "beta_fast": 32}},
        [
            (
                True,
                "linear does not read beta_fast: without effect, unless the model's own code uses it.",
                "linear 不读 beta_fast：不起作用，除非模型自己的代码用到它。",
            ),
            (
                False,
                "linear does not say which length the model was trained on before; max_position_embeddings may be that length or the extended one.",
                "linear 没有说模型原来按多长训练；max_position_embeddings 可能是原来的，也可能是加长后的。",
            ),
        ],
    ),
    (
        {**BASED, "rope_scaling": {**YARN, "type": "linear"}},
        [
            (
                True,
                "rope_type is yarn but type is linear; rope_type counts.",
                "rope_type 是 yarn，type 却是 linear；以 rope_type 为准。",
            )
        ],
    ),
    (
        {**BASED, "rope_scaling": YARN, "rope_parameters": {"rope_theta": 5e5}},
        [
            (
                True,
                "The file has both rope_parameters and rope_scaling; only rope_parameters is read here.",
                "文件里既有 rope_parameters 又有 rope_scaling；这里只读 rope_parameters。",
            ),
            (
                True,
                "rope_theta is given twice: 500000.0 with the scaling, which counts, and 10000.0 beside it.",
                "rope_theta 给了两次：缩放参数里是 500000.0（以它为准），外面是 10000.0。",
            ),
        ],
    ),
    (
        {**BASED, "rope_scaling": {**YARN, "attention_factor": 2.0}},
        [
            (
                True,
                "attention_factor is set to 2; from the factor it would be 1.13863.",
                "attention_factor 设成了 2；按 factor 算应是 1.13863。",
            )
        ],
    ),
    (
        {**BASED, "rope_scaling": {**YARN, "mscale": 1.0}},
        [
            (
                True,
                "Only one of mscale and mscale_all_dim is given; without the other it has no effect on cos and sin.",
                "mscale 和 mscale_all_dim 只给了一个；缺了另一个，它对 cos 和 sin 不起作用。",
            )
        ],
    ),
    (
        {**BASED, "max_position_embeddings": None},
        [
            (
                True,
                "max_position_embeddings is missing: the file does not say how long a text may be.",
                "缺少 max_position_embeddings：文件没有说文本可以有多长。",
            )
        ],
    ),
    (
        {**BASED, "head_dim": 128},
        [
            (
                False,
                "head_dim is 128, not hidden_size / num_attention_heads = 64: code that divides gets another RoPE.",
                "head_dim 是 128，而不是 hidden_size / num_attention_heads = 64：用除法的代码会得到另一个 RoPE。",
            )
        ],
    ),
]


@pytest.mark.parametrize(("config", "expected"), DIAGNOSES, ids=range(len(DIAGNOSES)))
def test_what_is_suspicious_is_said(config: dict, expected: list) -> None:
    assert findings(config) == [(suspicious, english) for suspicious, english, _ in expected]
    assert findings(config, "zh") == [(suspicious, chinese) for suspicious, _, chinese in expected]


def test_findings_name_their_layers() -> None:
    found = findings(
        {
            **BASED,
            "rope_parameters": {
                "full_attention": {**YARN, "rope_theta": 1e4, "magic": 1},
                "sliding_attention": {"rope_theta": 1e4},
            },
        }
    )
    assert found == [
        (True, "full_attention: yarn does not read magic: without effect, unless the model's own code uses it.")
    ]


def test_what_a_file_holds_is_quoted_not_filled_in() -> None:
    found = findings({**BASED, "rope_scaling": {**YARN, "{0.__class__}": 1, "{x}": 2}})
    assert "{0.__class__}, {x}" in found[0][1]


def test_every_scaling_has_its_keys() -> None:
    assert set(READ) == set(SCALINGS)


@pytest.mark.parametrize("text", [r'{"model_type": "\ud800"}', r'{"rope_parameters": {"\udfff": {}}}'])
def test_half_of_a_surrogate_pair_is_no_text(text: str) -> None:
    """JSON may spell one; no link and no page can carry it."""
    refusal = refused(encodings.read_config, text)
    assert str(refusal) == "the text holds half of a surrogate pair, which is no character"
    assert refusal.text("zh") == "文本里有半个代理对，它不是字符"
    assert encodings.read_config(r'{"a": "\ud83d\ude00"}') == {"a": "😀"}
