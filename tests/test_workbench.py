"""Facts and curves of a model's RoPE against direct evaluation."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posviz import encodings, similarity, workbench
from posviz.encodings.known_models import known_models
from posviz.encodings.model_config import ropes_of

KNOWN = known_models()


def rope_of(key: str) -> encodings.ModelRope:
    return next(iter(ropes_of(KNOWN[key].config).values()))


def test_facts_of_llama_3_1() -> None:
    rope = rope_of("llama-3.1-8b")
    found = workbench.facts(rope, 8192, 131_072)
    plain, scaled = rope.unscaled_inv_freq(), rope.inv_freq()
    assert (found.pairs, found.attention_factor, found.critical_dimension) == (64, 1.0, 70)
    np.testing.assert_allclose(found.turns_trained, 8192 * plain / (2 * math.pi))
    np.testing.assert_allclose(found.turns_wanted, 131_072 * scaled / (2 * math.pi))
    # every pair that had turned once in training has met all angles; the divided ones go further than trained
    beyond = (131_072 * scaled > 8192 * plain) & (8192 * plain < 2 * math.pi)
    assert found.unseen == int(beyond.sum()) > 0
    assert found.longest_wavelength == pytest.approx(2 * math.pi / scaled[-1].item())


def test_yarn_at_its_length_meets_nothing_new_in_slow_pairs() -> None:
    """Dividing by the whole stretch keeps the slow pairs where they were; without scaling they leave."""
    rope = rope_of("deepseek-v3")
    seen, reached = workbench.spans(rope, 4096, 163_840)
    _, high = rope.scaling.band(rope.width, rope.base)
    slow = np.arange(32) >= high
    assert slow.any()
    np.testing.assert_allclose(reached[slow], seen[slow])
    assert workbench.facts(rope, 4096, 163_840).unseen == 0
    plain = encodings.rope_from_config({"head_dim": 64, "max_position_embeddings": 4096, "rope_theta": 1e4})
    assert workbench.facts(plain, 4096, 163_840).unseen == 9


@pytest.mark.parametrize("key", list(KNOWN))
def test_context_bound_is_the_first_negative_sum(key: str) -> None:
    frequencies = rope_of(key).inv_freq()
    bound = workbench.context_bound(frequencies)
    last = workbench.FURTHEST if bound is None else bound
    near = np.unique(np.r_[np.arange(1, min(3000, last)), np.arange(max(1, last - 3000), last)])
    assert (similarity.rope_kernel(near, frequencies) >= -1e-9).all()
    if bound is not None:
        assert similarity.rope_kernel([bound], frequencies)[0] < 0


def test_alternatives_are_the_specs_ratios() -> None:
    rope = rope_of("llama-2-7b")
    found = workbench.alternatives(rope, 4096, 16_384)
    assert list(found) == ["linear", "ntk", "dynamic", "yarn", "llama3"]
    np.testing.assert_allclose(found["linear"][1], 0.25)
    assert found["ntk"][1][0] == 1.0 and found["ntk"][1][-1] == pytest.approx(0.25)
    assert workbench.alternatives(rope, 4096, 4096) == {}


def test_ratio_is_one_without_scaling_and_for_pairs_that_rest() -> None:
    np.testing.assert_array_equal(workbench.ratio(rope_of("llama-2-7b"), 16_384), 1.0)
    np.testing.assert_array_equal(workbench.ratio(rope_of("gemma-4-31b"), 16_384), 1.0)
    assert workbench.ratio(rope_of("llama-3.1-8b"), 16_384)[-1] == pytest.approx(1 / 8)


@given(st.integers(1, 1_000_000), st.integers(1, 600))
def test_columns_cover_every_distance_once(length: int, count: int) -> None:
    edges = workbench.columns(length, count)
    assert edges[0] == 1 and edges[-1] == max(2, length)
    assert (np.diff(edges) > 0).all() and len(edges) <= count + 1


@settings(max_examples=15)
@given(st.sampled_from(["llama-2-7b", "gpt-neox-20b", "yi-34b"]), st.integers(2, 3000))
def test_kernel_columns_hold_their_distances(key: str, length: int) -> None:
    frequencies = rope_of(key).inv_freq()
    curve = workbench.kernel(frequencies, length)
    whole = similarity.rope_kernel(np.arange(max(2, length)), frequencies)
    for first, last, low, high in zip(curve.edges, curve.edges[1:], curve.low, curve.high, strict=False):
        inside = whole[first:last]
        if last - first <= workbench.SAMPLES:
            assert (low, high) == (pytest.approx(inside.min(), abs=1e-12), pytest.approx(inside.max(), abs=1e-12))
        else:
            assert inside.min() - 1e-12 <= low <= high <= inside.max() + 1e-12
    bound = workbench.bound(frequencies, length)
    np.testing.assert_allclose(bound, similarity.rope_bound(curve.edges[:-1].copy(), frequencies))


@pytest.mark.parametrize("key", ["llama-2-7b", "gpt-neox-20b", "gpt-oss-20b"])
def test_needle_is_the_softmax_of_turned_vectors(key: str) -> None:
    """The closed form against turning the vectors, and the others' mean against 200,000 drawn keys."""
    rope, wanted = rope_of(key), 512
    curve = workbench.needle(rope, wanted, scaled=True)
    ones = torch.ones(1, rope.d_head, dtype=torch.float64)
    scale = rope.scale(rope.d_head)
    keys = torch.randn(200_000, rope.d_head, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turned = rope.rotate(keys, torch.full((len(keys),), 100), wanted)
    query = rope.rotate(ones, [300], wanted)
    others = math.log(wanted - 1) + math.log((scale * turned @ query[0]).exp().mean())
    for column in (0, 5, 20):
        at = int(curve.edges[column])
        assert curve.edges[column + 1] == at + 1  # a column of one distance
        score = float(query @ rope.rotate(ones, [300 - at], wanted).T) * scale
        weight = 1 / (1 + math.exp(others - score))
        assert curve.low[column] == curve.high[column] == pytest.approx(weight, rel=0.05)


def test_needle_without_scaling_ignores_it() -> None:
    rope = rope_of("qwen2.5-7b-yarn")
    plain = rope_of("qwen2.5-7b")
    for one, other in ((False, rope), (True, plain)):
        assert np.array_equal(
            workbench.needle(plain, 4096, scaled=False).low, workbench.needle(other, 4096, scaled=one).low
        )
    assert not np.array_equal(
        workbench.needle(rope, 4096, scaled=True).low, workbench.needle(rope, 4096, scaled=False).low
    )
