"""Errors of narrow types against float64: drawn values compared with sums worked out here."""

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

from posviz import encodings, precision, rotation, views
from posviz.types import Dims, Refusal

DIMS = Dims(d_model=16, n_heads=2)
NARROW = ("float32", "bfloat16", "float16")


def test_bfloat16_frequencies_are_wrong_by_o_1_at_position_2000():
    picture = views.picture(encodings.make("rope"), Dims(d_model=128, n_heads=1), 2001, view="cos")
    errors = precision.picture_error(picture, "bfloat16").values()
    assert np.abs(errors[2000]).max() > 0.5
    assert np.abs(precision.picture_error(picture, "float32").values()).max() < 1e-3


def test_one_cell_by_hand():
    """Position 7, pair 1 of a width of 4 with base 10000: w = 0.01, whose nearest bfloat16 is 0.010009765625."""
    mp.dps = 50
    picture = views.picture(encodings.make("rope"), Dims(d_model=4, n_heads=1), 8, view="angle")
    errors = precision.picture_error(picture, "bfloat16").values()
    narrow = torch.tensor(7.0, dtype=torch.bfloat16) * torch.tensor(0.01, dtype=torch.bfloat16)
    assert float(torch.tensor(0.01).to(torch.bfloat16)) == 0.010009765625
    assert errors[7, 1] == pytest.approx(float(mpf(float(narrow)) - mpf("0.07")), abs=1e-12)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("key", list(encodings.ENCODINGS))
def test_every_picture_has_an_error(key, name):
    for view in encodings.ENCODINGS[key].pictures:
        picture = views.picture(encodings.make(key), DIMS, 12, view=view)
        errors = precision.picture_error(picture, name)
        assert len(errors.sources) == len(picture.sources)
        assert errors.values().shape == picture.values().shape
        assert np.isfinite(errors.values()).all()
        eps = torch.finfo(getattr(torch, name)).eps
        assert np.abs(errors.values()).max() <= 40 * eps * max(1.0, picture.limit)


def test_more_digits_smaller_errors():
    picture = views.picture(encodings.make("sinusoidal"), DIMS, 200)
    largest = [np.abs(precision.picture_error(picture, name).values()).max() for name in precision.DTYPES]
    # numpy and torch may round a float64 sine differently in the last bit
    assert largest[0] < 1e-15 < largest[1] < largest[3] < largest[2], "bfloat16 has the fewest digits"


@pytest.mark.parametrize("key", [name for name in encodings.ENCODINGS if name != "none"])
def test_similarity_error_is_zero_in_float64_and_small_in_float32(key):
    spec = encodings.make(key)
    assert np.abs(precision.similarity_error(spec, DIMS, 20, "float64")).max() == 0
    errors = precision.similarity_error(spec, DIMS, 20, "float32", kind="dot")
    assert errors.shape == (20, 20)
    assert np.abs(errors).max() < 1e-3


def test_in_bfloat16_the_place_counts():
    errors = precision.similarity_error(encodings.make("rope"), DIMS, 600, "bfloat16", kind="cosine")
    diagonal = np.diagonal(errors, 3)
    assert np.ptp(diagonal) > 0.05
    exact = precision.similarity_error(encodings.make("rope"), DIMS, 600, "float32", kind="cosine")
    assert np.ptp(np.diagonal(exact, 3)) < 1e-3


@pytest.mark.parametrize("pairing", rotation.PAIRINGS)
def test_rotation_error_is_that_of_the_turned_vectors(pairing):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=8), rng.normal(size=8)
    w = rotation.inv_freq(8, 1e4).numpy()
    assert np.abs(precision.rotation_error(q, k, w, pairing, 30, "float64", 0.5)).max() == 0
    scores = precision._scores(q, k, w, pairing, 30, torch.float64) * 0.5
    spec = encodings.make("rope", pairing=pairing)
    x, y = (torch.tensor(v)[None].expand(30, -1) for v in (q, k))
    np.testing.assert_allclose(scores, spec.rotate(x, range(30)) @ spec.rotate(y, range(30)).T * 0.5, atol=1e-12)
    coarse = np.abs(precision.rotation_error(q, k, w, pairing, 600, "bfloat16", 0.5))
    assert coarse[500:, 500:].max() > 10 * coarse[:8, :8].max(), "far out the score is worse"


def test_an_unknown_type_is_refused():
    with pytest.raises(Refusal) as caught:
        precision.dtype_named("int8")
    assert str(caught.value) == "`dtype` must be one of float64, float32, bfloat16, float16, got int8"
    assert caught.value.text("zh") == "`dtype` 只能是 float64, float32, bfloat16, float16 之一，现在是 int8"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("what", precision.ROUNDED)
def test_an_angle_beyond_float16_is_wrong(what):
    """Its largest number is 65504: at 65520 a position is infinite, and so is its angle."""
    errors = precision.angle_errors(np.array([1.0]), 65_530, "float16", what)
    first = int(precision.first_seen(errors[65_520:])[0])
    assert first == (-1 if what == "frequencies" else 0)
    np.testing.assert_array_equal(precision.first_seen(np.array([[0.0, np.nan], [np.inf, 0.0]])), [1, 0])
