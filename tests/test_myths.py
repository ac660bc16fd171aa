"""The verdicts come from the numbers: each is checked here against an independent calculation."""

import math

import numpy as np
import pytest
import torch

from posviz import myths, trained
from posviz.myths import MYTHS, Case
from posviz.types import Dims

CASE = Case(Dims(d_model=64, n_heads=4), max_len=128, base=10_000.0)
EXPECTED = {
    "falls": "false",
    "neighbours": "depends",
    "coincide": "false",
    "unique": "depends",
    "identical": "depends",
    "width": "false",
    "rope_decays": "depends",
    "pairings": "false",
    "alibi": "depends",
    "nope": "depends",
    "destroys": "depends",
}


@pytest.fixture
def untrained(monkeypatch, tmp_path):
    monkeypatch.setattr(trained, "RESULTS", tmp_path / "none.json")
    trained.twins.cache_clear()
    yield tmp_path
    trained.twins.cache_clear()


@pytest.mark.parametrize("key", list(MYTHS))
def test_every_finding_is_complete(key, untrained):
    myth, found = MYTHS[key], myths.measure(key, CASE)
    assert myth.key == key
    assert found.verdict in (*myths.VERDICTS, None)
    assert 1 <= len(found.numbers) <= 4
    for number in found.numbers:
        assert math.isfinite(number.value)
        assert number.label.en and number.label.zh
    for words in (myth.sentence, myth.why, found.example):
        assert words.en.endswith(".") and words.zh.endswith("。")
        assert "{" not in words.en + words.zh
    assert (found.verdict is None) == myth.needs_training
    assert found.verdict == EXPECTED.get(key)


def test_where_models_were_trained_the_numbers_decide(monkeypatch, untrained):
    for name, grown, verdict in (
        ("extrapolate", 1.5, "false"),
        ("extrapolate", 0.0, "true"),
        ("rope_endless", 2.0, "false"),
    ):
        file = untrained / f"{name}-{grown}.json"
        twin = '{"loss_1x": {"mean": 3.0}, "loss_4x": {"mean": %s}}' % (3.0 + grown)
        file.write_text('{"twins": {"sinusoidal": %s, "rope": %s}}' % (twin, twin), "utf-8")  # noqa: UP031
        monkeypatch.setattr(trained, "RESULTS", file)
        trained.twins.cache_clear()
        found = myths.measure(name, CASE)
        assert found.verdict == verdict
        assert any(n.value == pytest.approx(grown) for n in found.numbers)


def sinusoids(length: int, d: int, base: float) -> np.ndarray:
    """The table once more, with numpy alone."""
    angle = np.arange(length)[:, None] * base ** (-np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


def test_rises_are_those_of_the_table():
    table = sinusoids(2048, 64, 1e4)
    curve = table @ table[0]
    assert myths.measure("falls", CASE).numbers[0].value == int((np.diff(curve) > 1e-9 * 32).sum())
    # and with two dimensions and a huge base there is nothing to ripple
    flat = myths.measure("falls", Case(Dims(d_model=2, n_heads=1), 16, 1e12))
    assert flat.verdict == "false"  # one hand still turns


def test_positions_1_and_10001_are_as_far_apart_as_their_rows():
    table = sinusoids(10_002, 64, 1e4)
    found = myths.measure("coincide", CASE).numbers
    assert found[0].value == pytest.approx(np.linalg.norm(table[1] - table[10_001]), rel=1e-9)
    assert found[1].value == pytest.approx(np.linalg.norm(table[1] - table[2]), rel=1e-9)
    assert found[2].value == 1, "position 1's nearest other is its neighbour"


def test_rows_that_bfloat16_tells_apart():
    positions = torch.arange(8192).to(torch.bfloat16)
    found = myths.measure("unique", CASE).numbers
    assert found[0].value == 8192
    assert found[2].value == len(positions.unique()), "as many as there are whole numbers in bfloat16"


def test_the_causal_mask_is_what_tells_nope_the_order():
    without, with_mask = (number.value for number in myths.measure("nope", CASE).numbers)
    assert without < 1e-12 < 0.1 < with_mask


def test_the_angle_of_an_added_position():
    found = myths.measure("destroys", CASE).numbers
    # |x| = sqrt(d), |PE| = sqrt(d/2), nearly at right angles: tan = 1/sqrt(2)
    assert found[0].value == pytest.approx(math.degrees(math.atan(2**-0.5)), abs=1)
    assert found[0].expected.en == "100% of 256 words still nearest to themselves"
    # 0.02 sqrt(d) against sqrt(d/2): almost all of the sum is the position
    assert found[1].value > 80
    assert int(found[1].expected.en.partition("%")[0]) < 10
    # the trained twin's embeddings are longer than its positions
    assert 5 < found[2].value < 45
    assert int(found[2].expected.en.partition("%")[0]) > 90


@pytest.mark.parametrize("dims", [(1, 1), (2, 1), (6, 3), (1024, 64)])
@pytest.mark.parametrize("key", list(MYTHS))
def test_any_size_the_sidebar_allows(key, dims):
    found = myths.measure(key, Case(Dims(d_model=dims[0], n_heads=dims[1]), max_len=1, base=1e12))
    assert found.numbers
