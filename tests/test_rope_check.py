"""Finding the convention: every single deviation is found and named, real bugs are recognised, noise is not."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama

from posviz import encodings, rope_check
from posviz.encodings.known_models import known_models
from posviz.rope_check import Convention, angles, check, turn
from posviz.types import Refusal

CASES = {c["id"]: c for c in json.loads((Path(__file__).parent / "golden/cases.json").read_text("utf-8"))}
D, START = 32, 100


def vectors(rows: int = 3, width: int = D, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width))


def turned(x: np.ndarray, start: int = START, **changes) -> np.ndarray:
    convention = Convention(**{"width": x.shape[1], **changes})
    return turn(x, angles(convention, start + np.arange(len(x)), x.shape[1], None), convention)


DEVIATIONS = [
    {},
    {"pairing": "interleaved", "table": "interleaved"},
    {"table": "interleaved"},
    {"pairing": "interleaved"},
    {"sign": -1},
    {"swapped": True},
    {"offset": 1},
    {"offset": -1},
    {"base": 500_000.0},
    {"base": 1_000_000.0},
    {"divisor": 4.0},
    {"width": 16},
    {"width": 8},
    {"exponent": "i/width"},
    {"width": 8, "exponent": "2i/d_head"},
    {"precision": "bfloat16 frequencies"},
    {"precision": "float16 angles"},
    {"sign": -1, "offset": 1, "pairing": "interleaved", "table": "interleaved", "base": 500_000.0},
]


@pytest.mark.parametrize("changes", DEVIATIONS, ids=str)
def test_every_deviation_is_found(changes: dict) -> None:
    x = vectors()
    found = check(x, turned(x, **changes), START, 10_000.0)
    assert found.matches[0].convention == Convention(**{"width": D, **changes})
    assert found.matches[0].error < 1e-12
    assert len(found.matches) == 1 and found.first is None and not found.still


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounded_vectors_are_still_recognised(dtype: torch.dtype) -> None:
    x = torch.from_numpy(vectors()).to(dtype)
    spec = encodings.make("rope", pairing="interleaved")
    y = spec.rotate(x, range(START, START + 3))
    found = check(x.double().numpy(), y.double().numpy(), START, 10_000.0)
    assert found.matches[0].convention == Convention(pairing="interleaved", table="interleaved", width=D)
    assert found.nearest.error < 1e-2


def test_other_peoples_code() -> None:
    x = torch.from_numpy(vectors(8)).float()[None, None]
    config = llama.LlamaConfig(
        hidden_size=D, num_attention_heads=1, rope_parameters={"rope_type": "default", "rope_theta": 5e5}
    )
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, torch.arange(8)[None])
    y, _ = llama.apply_rotary_pos_emb(x, x, cos, sin)
    found = check(x[0, 0].double().numpy(), y[0, 0].double().numpy(), 0, 10_000.0)
    assert found.matches[0].convention == Convention(width=D, base=500_000.0)
    sin, cos = gptj.create_sinusoidal_positions(8, D)[None].chunk(2, dim=-1)
    y = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)
    found = check(x[0, 0].double().numpy(), y[0, 0].double().numpy(), 0, 10_000.0)
    assert found.matches[0].convention == Convention(pairing="interleaved", table="interleaved", width=D)


def test_public_cases() -> None:
    given = CASES["rope-pairing-conventions"]
    for pairing in ("half", "interleaved"):
        found = check(np.array(given["input"]["x"]), np.array(given["expected"][pairing]), 1, 10_000.0)
        assert pairing in {match.convention.pairing for match in found.matches[:1]}
    given = CASES["rope-partial"]
    found = check(np.array([given["input"]["x"]]), np.array([given["expected"]]), 2, 10_000.0)
    assert found.matches[0].convention == Convention(width=4)


@pytest.mark.parametrize("key", ["llama-3.1-8b", "gpt-oss-20b", "phi-3-mini-128k"])
def test_a_models_scaling_is_found_with_its_attention_factor(key: str) -> None:
    rope = encodings.rope_from_config(known_models()[key].config)
    x = vectors(4, rope.d_head)
    start = 9000
    y = rope.rotate(torch.from_numpy(x), range(start, start + 4)).numpy()
    found = check(x, y, start, rope.base, rope)
    best = found.matches[0]
    assert best.convention.scaled and best.error < 1e-9
    assert best.length == pytest.approx(rope.attention_factor(), rel=1e-6)
    assert not any(match.convention.scaled for match in check(x, y, start, rope.base).matches)


def test_nothing_fits_noise_and_the_place_is_named() -> None:
    x = vectors()
    noise = check(x, vectors(seed=1), START, 10_000.0)
    assert noise.matches == () and noise.nearest.error > 0.1
    y = turned(x)
    y[1, 7] += 0.5  # one wrong number in a good rotation
    found = check(x, y, START, 10_000.0)
    assert found.matches == () and found.nearest.convention == Convention(width=D)
    assert (found.first.row, found.first.dimension) == (1, 7)
    assert found.first.got - found.first.expected == pytest.approx(0.5, abs=0.02)


def test_position_zero_says_nothing_and_standing_still_is_seen() -> None:
    x = vectors(1)
    found = check(x, x, 0, 10_000.0)
    assert found.still and len(found.matches) > 10 and found.matches[0].convention == Convention(width=D)


def test_heads_share_their_positions() -> None:
    x = vectors(6).reshape(2, 3, D)
    y = np.stack([turned(head) for head in x])
    assert check(x, y, START, 10_000.0).matches[0].convention == Convention(width=D)


@pytest.mark.parametrize(
    ("before", "after", "start", "base", "english", "chinese"),
    [
        (
            np.ones(4),
            np.ones(6),
            0,
            1e4,
            "before and after must have the same shape, got (4,) and (6,)",
            "旋转前后的形状必须一样，现在是 (4,) 和 (6,)",
        ),
        (
            np.ones(5),
            np.ones(5),
            0,
            1e4,
            "a vector must have an even number of dimensions from 2 to 1024, got 5",
            "向量的维数必须是 2 到 1024 的偶数，现在是 5",
        ),
        (
            np.zeros(4),
            np.ones(4),
            0,
            1e4,
            "the vectors before turning are all zero: nothing can be seen",
            "旋转前的向量全是零：什么也看不出来",
        ),
        (
            np.ones(4),
            np.ones(4),
            -1,
            1e4,
            "`position` must be a whole number from 0 to 2147483647, got -1",
            "`position` 必须是 0 到 2147483647 的整数，现在是 -1",
        ),
        (
            np.ones(4),
            np.ones(4),
            0,
            1.0,
            "`base` must be a finite number above 1 and up to 1e+12, got 1.0",
            "`base` 必须是大于 1、不大于 1e+12 的有限数，现在是 1.0",
        ),
    ],
    ids=range(5),
)
def test_refusals(before, after, start, base, english: str, chinese: str) -> None:
    with pytest.raises(Refusal) as caught:
        check(before, after, start, base)
    assert str(caught.value) == english
    assert caught.value.text("zh") == chinese


def test_a_model_of_another_width_is_refused() -> None:
    rope = encodings.rope_from_config(known_models()["llama-3.1-8b"].config)
    with pytest.raises(Refusal, match="this model's `d_head` is 128, got 4"):
        check(np.ones(4), np.ones(4), 1, 1e4, rope)
    assert rope_check.MAX_WIDTH >= 512
