"""The comparison measures; it does not repeat what an encoding says of itself."""

import math

import numpy as np
import pytest
import torch

from posviz import comparison, encodings, text, trained
from posviz.encodings import ENCODINGS
from posviz.types import Dims, Refusal

DIMS = Dims(d_model=64, n_heads=4)
TOKENS = text.tokenize("我爱你")


@pytest.fixture(scope="module")
def found() -> dict[str, comparison.Measured]:
    return {name: comparison.measure(encodings.make(name), DIMS, 128, TOKENS) for name in ENCODINGS}


def test_measured_direction_and_reach_are_what_is_claimed(found):
    for name, row in found.items():
        traits = ENCODINGS[name].capabilities
        assert row.directional == traits.directional, name
        assert row.reach == traits.unbounded, name
        assert row.content == traits.content, name
        assert bool(row.parameters) == traits.trainable, name


def test_nature_is_measured(found):
    natures = {name: row.nature for name, row in found.items()}
    assert natures["sinusoidal"] == natures["learned"] == natures["rope_2d"] == "absolute"
    assert natures["rope"] == natures["alibi"] == natures["t5"] == natures["none"] == "relative"
    assert natures["shaw"] == natures["cope"] == natures["conv"] == "content"
    # up to its threshold FIRE is relative; beyond, it is not
    assert natures["fire"] == "relative"
    long = comparison.measure(encodings.make("fire", threshold=64), DIMS, 200, TOKENS)
    assert long.nature == "absolute"


def test_sinusoids_are_relative_among_themselves_and_absolute_in_scores(found):
    assert found["sinusoidal"].spread < 1e-12
    assert found["sinusoidal"].scores > 0.1
    assert found["none"].spread is None and found["rope"].shift is None
    assert found["learned"].spread > 0.01


def test_shift_is_the_mean_of_the_table(found):
    table = encodings.make("sinusoidal").table(range(128), 64)
    assert found["sinusoidal"].shift == pytest.approx(float(table.abs().mean()), rel=1e-12)
    assert found["learned"].shift == pytest.approx(0.02 * math.sqrt(2 / math.pi), rel=0.05)


def test_parameters_are_counted(found):
    assert found["learned"].parameters == 128 * 64
    assert found["t5"].parameters == 32 * 4
    assert found["kerple"].parameters == 8


def test_a_broken_encoding_would_be_seen(monkeypatch):
    """A RoPE that forgets to turn the keys is no longer relative."""
    from posviz.encodings import rope

    monkeypatch.setattr(rope._Module, "rotate", lambda self, q, k, q_pos, k_pos: (self.spec.rotate(q, q_pos), k))
    assert comparison.measure(encodings.make("rope"), DIMS, 128, TOKENS).nature == "absolute"


def test_reversal_follows_the_sentence():
    same = comparison.measure(encodings.make("rope"), DIMS, 16, text.tokenize("上海自来水来自海上"))
    assert not same.directional
    causal = comparison.measure(encodings.make("alibi", causal=True), DIMS, 16, TOKENS)
    assert causal.directional, "under the causal mask the order shows"


def test_refusals_come_through():
    with pytest.raises(Refusal, match="`d_head` must be even for RoPE"):
        comparison.measure(encodings.make("rope"), Dims(d_model=12, n_heads=4), 16, TOKENS)


def test_cost_is_measured():
    n, d, heads = comparison.CALL, 64, 4
    found = {name: comparison.cost(encodings.make(name), DIMS, repeat=1) for name in ("none", "rope", "alibi", "t5")}
    assert found["none"].seconds > 0
    # q, k, v and the squares of scores and weights, at its fullest; a third square nobody needs
    assert 3 * n * d * 4 + 2 * heads * n * n * 4 <= found["none"].memory < 3 * heads * n * n * 4
    # a bias is a square for every head, in the place of no position's one zero
    for name in ("alibi", "t5"):
        assert found[name].memory - found["none"].memory >= heads * n * n * 4 - 4
    assert found["rope"].memory < found["alibi"].memory


def test_measuring_touches_no_global_seed():
    before = torch.get_rng_state()
    comparison.measure(encodings.make("cope"), DIMS, 16, TOKENS)
    comparison.cost(encodings.make("cope"), DIMS, repeat=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_where_there_are_no_trained_results_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(trained, "RESULTS", tmp_path / "missing.json")
    trained.twins.cache_clear()
    try:
        assert trained.twins() is None
        assert trained.loss("rope", "1x") is None and trained.stretch("rope") is None
        file = tmp_path / "there.json"
        file.write_text('{"twins": {"rope": {"loss_1x": {"mean": 2.0}, "loss_4x": {"mean": 2.5}}}}', "utf-8")
        monkeypatch.setattr(trained, "RESULTS", file)
        trained.twins.cache_clear()
        assert trained.loss("rope", "1x") == 2.0
        assert np.isclose(trained.stretch("rope"), 0.5)
        assert trained.stretch("alibi") is None
    finally:
        trained.twins.cache_clear()
