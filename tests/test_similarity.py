"""How alike positions are: matrices, curves, the shift map, RoPE's kernel and its bound."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from posviz import encodings, rotation, similarity
from posviz.types import Refusal

EVEN = st.integers(1, 24).map(lambda n: 2 * n)
BASES = st.floats(1.0000001, 1e12)


def sinusoids(rows: int, d_model: int, **given) -> torch.Tensor:
    return encodings.make("sinusoidal", **given).table(range(rows), d_model)


def test_the_three_kinds_by_hand():
    table = [[3, 4], [4, 3], [0, 0]]
    # 9 + 16 = 25, 12 + 12 = 24
    np.testing.assert_array_equal(similarity.matrix(np.array(table)), [[25, 24, 0], [24, 25, 0], [0, 0, 0]])
    # lengths 5 and 5; a row of zeros is like nothing, not even itself
    np.testing.assert_allclose(
        similarity.matrix(np.array(table), "cosine"),
        [[1, 0.96, 0], [0.96, 1, 0], [0, 0, 0]],
        rtol=0,
        atol=1e-15,
    )
    # d/2 = 1
    np.testing.assert_array_equal(similarity.matrix(torch.tensor(table), "scaled"), similarity.matrix(np.array(table)))
    wide = np.arange(12.0).reshape(2, 6)
    np.testing.assert_allclose(similarity.matrix(wide, "scaled"), similarity.matrix(wide) / 3, rtol=1e-15)


def test_every_kind_of_table_is_taken():
    weight = torch.nn.Parameter(torch.tensor([[3.0, 4.0]]))  # a learned table as it is
    for table in (weight, weight.detach().bfloat16(), [[3, 4]]):
        assert similarity.matrix(table).tolist() == [[25.0]]
        assert similarity.matrix(table).dtype == np.float64


@pytest.mark.parametrize(("bad", "quoted"), [("euclid", "euclid"), (None, "None"), ([], "[]")])
def test_unknown_kinds_are_refused(bad, quoted):
    for use in (similarity.matrix, similarity.by_distance):
        with pytest.raises(Refusal) as caught:
            use(np.eye(2), bad)
        assert str(caught.value) == f"`kind` must be one of dot, cosine, scaled, got {quoted}"
        assert caught.value.text("zh") == (f"`kind` 只能是 dot, cosine, scaled 之一，现在是 {quoted}")


@given(EVEN, BASES, st.sampled_from(["interleaved", "halves"]))
def test_a_sinusoidal_product_is_a_sum_of_cosines(d_model, base, layout):
    rows = 12
    got = similarity.matrix(sinusoids(rows, d_model, base=base, layout=layout))
    k = np.abs(np.arange(rows)[:, None] - np.arange(rows))
    w = rotation.inv_freq(d_model, base).numpy()
    expected = np.cos(k[:, :, None] * w).sum(-1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11)


@given(EVEN, BASES)
def test_for_sinusoids_the_cosine_is_the_dot_divided_by_half_d(d_model, base):
    table = sinusoids(40, d_model, base=base)
    cosine = similarity.matrix(table, "cosine")
    np.testing.assert_allclose(cosine, similarity.matrix(table, "scaled"), rtol=0, atol=1e-13)
    np.testing.assert_allclose(cosine, similarity.matrix(table) / (d_model / 2), rtol=0, atol=1e-13)


def test_for_other_tables_it_is_not():
    table = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    difference = similarity.matrix(table, "cosine") - similarity.matrix(table, "scaled")
    assert np.abs(difference).max() > 0.1


@pytest.mark.parametrize("kind", similarity.KINDS)
def test_sinusoids_are_alike_by_distance_only(kind):
    curve = similarity.by_distance(sinusoids(300, 64), kind)
    assert curve.mean.shape == curve.spread.shape == (300,)
    np.testing.assert_allclose(curve.spread, 0, atol=1e-12)
    assert curve.mean[0] == pytest.approx(32 if kind == "dot" else 1, abs=1e-12)


def test_a_learned_table_is_not():
    table = torch.randn(300, 64, generator=torch.Generator().manual_seed(0))
    curve = similarity.by_distance(table)
    assert (curve.spread[:-1] > 1).all()
    assert curve.spread[-1] == 0, "one pair has no spread"


def test_mean_and_spread_by_hand():
    square = np.array([[1.0, 2, 9], [5, 3, 6], [7, 8, 5]])
    mean, spread = similarity.diagonals(square)
    # diagonals (1, 3, 5), (2, 6), (9)
    np.testing.assert_allclose(mean, [3, 4, 9])
    np.testing.assert_allclose(spread, [math.sqrt(8 / 3), 2, 0])


def test_rises_by_hand():
    # from 1 to 2 at k = 2, and from 0 to 0.5 at k = 4
    assert similarity.rises(np.array([5, 3, 1, 2, 0, 0.5])).tolist() == [2, 4]
    assert similarity.rises(np.array([3, 2, 1])).tolist() == []
    assert similarity.rises(np.array([1, 2, 3])).tolist() == [0, 1]
    assert similarity.rises(np.array([1.0])).tolist() == []
    assert similarity.rises(np.array([])).tolist() == []
    # flat but for rounding is not a rise
    assert similarity.rises(np.array([1, 1 + 1e-12, 1])).tolist() == []
    assert similarity.rises(np.zeros(4)).tolist() == []
    assert similarity.rises(-np.arange(3.0)).tolist() == []
    assert similarity.rises(np.array([5, 3, 4])).dtype == np.int32


def test_similarity_does_not_fall_steadily():
    """The usual claim fails early: at k = 11 for d = 128, and a thousand times for d = 512."""
    small = similarity.rises(similarity.by_distance(sinusoids(512, 128)).mean)
    assert small[:5].tolist() == [11, 17, 23, 28, 29]
    large = similarity.rises(similarity.by_distance(sinusoids(2048, 512)).mean)
    assert len(large) == 1000  # of 2047 steps
    assert large[0] == 43


def test_the_first_rise_with_50_digits():
    mp.dps = 50

    def product(k: int):
        return sum(mp.cos(k * mpf(10_000) ** (-mpf(2 * i) / 128)) for i in range(64))

    values = [product(k) for k in range(13)]
    assert all(b < a for a, b in itertools.pairwise(values[:12]))
    assert values[12] > values[11]


@given(EVEN, BASES, st.integers(-500, 500), st.sampled_from(["interleaved", "halves"]))
def test_one_matrix_moves_every_position(d_model, base, k, layout):
    spec = encodings.make("sinusoidal", base=base, layout=layout)
    m = similarity.shift_map(k, *spec.columns(d_model))
    start = max(0, -k)
    before = spec.table(range(start, start + 9), d_model).numpy()
    after = spec.table(range(start + k, start + k + 9), d_model).numpy()
    np.testing.assert_allclose(before @ m.T, after, rtol=0, atol=1e-11)
    np.testing.assert_allclose(m @ m.T, np.eye(d_model), rtol=0, atol=1e-14)
    assert np.linalg.det(m) == pytest.approx(1, abs=1e-12)


def test_shift_maps_add_up():
    columns = encodings.make("sinusoidal").columns(16)
    m = {k: similarity.shift_map(k, *columns) for k in (-7, 0, 3, 4, 7)}
    np.testing.assert_allclose(m[3] @ m[4], m[7], rtol=0, atol=1e-14)
    np.testing.assert_allclose(m[7] @ m[-7], np.eye(16), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(m[0], np.eye(16))


def test_the_shift_map_by_hand():
    # d = 2: one pair of frequency 1, turned by 1 radian
    s, c = math.sin(1), math.cos(1)
    m = similarity.shift_map(1, *encodings.make("sinusoidal").columns(2))
    np.testing.assert_allclose(m, [[c, s], [-s, c]], rtol=0, atol=1e-16)


def read_only_array() -> np.ndarray:
    array = np.array([0, 1, 2, 10, 50])
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "distances",
    [torch.tensor([0, 1, 2, 10, 50]), read_only_array(), [0, 1, 2, 10, 50]],
    ids=["tensor", "array", "list"],
)
def test_roformers_bound(distances):
    got = similarity.rope_bound(distances, rotation.inv_freq(128, 1e4))
    expected = [32.5, 31.538166142658085, 28.955988473564467, 17.954137137084835, 12.629452488319242]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_bound_at_zero_is_a_mean_of_counts():
    for width in (2, 4, 64):
        # |S_j| = j, so (1 + 2 + ... + n) / n = (n + 1) / 2
        got = similarity.rope_bound([0], rotation.inv_freq(width, 1e4))
        assert got[0] == pytest.approx((width / 2 + 1) / 2, abs=1e-12)


@given(EVEN, st.integers(0, 2000), st.integers(0, 2**31))
def test_no_score_exceeds_the_bound(d_head, k, seed):
    """RoFormer eq. 37: |q.k| <= max |h_{i+1} - h_i| sum |S_i|, h_i the product of pair i, h_{d/2} = 0."""
    spec = encodings.make("rope", pairing="interleaved")
    q, key = torch.randn(2, 1, d_head, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    score = float((spec.rotate(q, [0]) * spec.rotate(key, [k])).sum())
    pairs = [torch.view_as_complex(v[0].reshape(-1, 2)).numpy() for v in (q, key)]
    h = np.append(pairs[0].conj() * pairs[1], 0)
    sums = similarity.rope_bound([k], spec.inv_freq(d_head))[0] * d_head / 2
    assert abs(score) <= np.abs(np.diff(h)).max() * sums + 1e-12


@given(EVEN, BASES, st.integers(0, 3000))
def test_the_kernel_is_the_score_of_equal_vectors(d_head, base, k):
    spec = encodings.make("rope", base=base)
    ones = torch.ones(1, d_head, dtype=torch.float64)
    score = (spec.rotate(ones, [0]) * spec.rotate(ones, [k])).sum().item() / d_head
    got = similarity.rope_kernel([k, -k], spec.inv_freq(d_head))
    assert got[0] == pytest.approx(score, abs=1e-11)
    assert got[0] == got[1]
    assert abs(got[0]) <= 1 + 1e-12


@pytest.mark.parametrize(("width", "count"), [(8192, 1001), (128, 20_001), (2, 5), (6, 0)])
def test_the_kernel_and_its_bound_hold_few_angles_at_once(monkeypatch, width, count):
    at, frequencies = torch.arange(count), rotation.inv_freq(width, 1e4)
    theta = rotation.angles(at, frequencies)
    bound = torch.polar(torch.ones_like(theta), theta).cumsum(dim=1).abs().mean(dim=1)
    angles, sizes = rotation.angles, []

    def counted(*given):
        found = angles(*given)
        sizes.append(found.numel())
        return found

    monkeypatch.setattr(rotation, "angles", counted)
    np.testing.assert_array_equal(similarity.rope_kernel(at, frequencies), theta.cos().mean(dim=1).numpy())
    np.testing.assert_array_equal(similarity.rope_bound(at, frequencies), bound.numpy())
    assert max(sizes) <= similarity.ANGLES and sum(sizes) == 2 * theta.numel()


def test_a_zero_row_is_like_nothing():
    got = similarity.between(torch.zeros(2, 3), torch.ones(1, 3), "cosine")
    np.testing.assert_array_equal(got, [[0.0], [0.0]])


def test_the_kernel_ripples():
    kernel = similarity.rope_kernel(torch.arange(200), rotation.inv_freq(128, 1e4))
    assert kernel[0] == 1
    assert similarity.rises(kernel)[0] == 11
    assert kernel.min() < kernel[-1]
