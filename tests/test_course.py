"""The course's own numbers, d_model 64: worked out independently in golden/make_course.py."""

import importlib.util
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from posviz import encodings, similarity
from posviz.types import Dims

GOLDEN = Path(__file__).parent / "golden"
COURSE = json.loads((GOLDEN / "course.json").read_text("utf-8"))
DIMS = Dims(d_model=64, n_heads=1)
ROWS, D = COURSE["rows"], COURSE["d_model"]


def seeded_input() -> torch.Tensor:
    rng = random.Random(0)
    x = [[2 * rng.random() - 1 for _ in range(D)] for _ in range(ROWS)]
    assert x[0][:4] == COURSE["first_input_row"]
    return torch.tensor(x, dtype=torch.float64)


def build(name: str, **given):
    return encodings.make(name, **given).build(DIMS, COURSE["max_len"]).double()


def test_the_file_is_what_its_script_makes():
    spec = importlib.util.spec_from_file_location("make_course", GOLDEN / "make_course.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.course() == COURSE


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rope"])
def test_trainable_parameters(name):
    count = sum(p.numel() for p in build(name).parameters())
    assert count == COURSE["trainable_parameters"][name]


def test_mean_change_sinusoidal():
    x = seeded_input()
    change = (build("sinusoidal").embed(x) - x).abs().mean().item()
    assert change == pytest.approx(COURSE["mean_change"]["sinusoidal"], abs=1e-14)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_mean_change_rope(pairing):
    x = seeded_input()
    at = torch.arange(ROWS)
    turned, _ = build("rope", pairing=pairing).rotate(x, x, at, at)
    change = (turned - x).abs().mean().item()
    assert change == pytest.approx(COURSE["mean_change"]["rope"][pairing], abs=1e-14)


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_mean_change_learned(seed):
    """Noise of std 0.02: the mean of |E| is 0.02 sqrt(2/pi), up to its sampling error."""
    x = seeded_input()
    module = encodings.make("learned").build(DIMS, COURSE["max_len"], torch.Generator().manual_seed(seed))
    change = (module.double().embed(x) - x).abs().mean().item()
    expected, error = (COURSE["mean_change"][f"learned_{key}"] for key in ("expected", "standard_error"))
    assert abs(change - expected) < 4 * error
    rows = torch.randn(COURSE["max_len"], D, generator=torch.Generator().manual_seed(seed)) * 0.02
    assert change == pytest.approx(rows[:ROWS].double().abs().mean().item(), abs=1e-14)


def test_the_first_five_rows_and_eight_columns():
    table = encodings.make("sinusoidal", base=float(COURSE["base"])).table(range(5), D)
    np.testing.assert_allclose(table[:, :8], COURSE["table_5x8"], rtol=0, atol=4e-16)


def test_position_0_against_others_over_8_dimensions_and_over_all():
    table = encodings.make("sinusoidal").table(range(21), D)
    k = COURSE["distances"]
    assert k == [1, 2, 5, 10, 20]
    first_8 = similarity.matrix(table[:, :8])[0, k]
    all_64 = similarity.matrix(table)[0, k]
    np.testing.assert_allclose(first_8, COURSE["pos0_dot_posk_first_8_dims"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(all_64, COURSE["pos0_dot_posk_all_64_dims"], rtol=0, atol=1e-13)
    # why they differ: the first 8 dimensions are the 4 fastest pairs; the slow ones hardly move
    w = [10_000 ** (-2 * i / D) for i in range(D // 2)]
    slow = [sum(np.cos(distance * f) for f in w[4:]) for distance in k]
    np.testing.assert_allclose(all_64 - first_8, slow, rtol=0, atol=1e-13)
    assert np.diff(first_8).max() > 0, "over 8 dimensions it already rises within these five"
