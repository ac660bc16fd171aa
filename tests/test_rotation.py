"""Frequencies, angles, pairings; exactness against 50 digits and the laws of rotations."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from posviz import encodings, rotation
from posviz.types import Refusal

PAIRINGS = rotation.PAIRINGS
EVEN = st.integers(1, 16).map(lambda n: 2 * n)
BASES = st.floats(1.0000001, 1e12)


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


def vectors(width: int, seed: int, rows: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=generator, dtype=torch.float64)


def exact_frequencies(width: int, base: float) -> list:
    mp.dps = 50
    return [mpf(base) ** (-mpf(2 * i) / width) for i in range(width // 2)]


@pytest.mark.parametrize("width", [2, 4, 64, 128, 1024])
@pytest.mark.parametrize("base", [np.nextafter(1.0, 2), 1.5, 100.0, 1e4, 5e5, 1e12])
def test_frequencies_are_exact(width, base):
    got = rotation.inv_freq(width, float(base))
    assert got.dtype == torch.float64
    assert got.shape == (width // 2,)
    for value, exact in zip(got.tolist(), exact_frequencies(width, float(base)), strict=True):
        # half an ulp of the exponent (at most 1) times ln(base) (at most 28) is 3e-15
        assert abs(value - exact) <= 4e-15 * exact


@given(EVEN, BASES)
def test_frequencies_start_at_one_and_fall(width, base):
    got = rotation.inv_freq(width, base)
    assert got[0] == 1.0
    assert bool((got.diff() <= 0).all())
    assert torch.isfinite(got).all()


@pytest.mark.parametrize("width", [0, 1, 3, 65, -2])
def test_odd_widths_are_refused(width):
    error = refused(rotation.inv_freq, width, 1e4)
    assert str(error) == (f"a width that is turned in pairs must be even and at least 2, got {width}")
    assert error.text("zh") == f"成对旋转的宽度必须是偶数且不小于 2，现在是 {width}"


def test_angles_keep_their_digits_far_out():
    """At position 131071 a float32 angle is off by more than 1e-3 in the cosine."""
    mp.dps = 50
    for base in (1e4, 5e5):
        theta = rotation.angles(torch.tensor([131_071]), rotation.inv_freq(128, base))[0]
        worst = max(
            abs(mp.cos(131_071 * w) - value)
            for w, value in zip(exact_frequencies(128, base), theta.cos().tolist(), strict=True)
        )
        assert worst < 5e-12
        single = (torch.tensor(131_071.0) * rotation.inv_freq(128, base).float()).cos()
        assert (single.double() - theta.cos()).abs().max() > 1e-3


def test_a_table_far_out_is_exact():
    mp.dps = 50
    row = encodings.make("sinusoidal").table([131_071], 128)[0]
    for i, w in enumerate(exact_frequencies(128, 1e4)):
        assert abs(mp.sin(131_071 * w) - row[2 * i].item()) < 5e-12
        assert abs(mp.cos(131_071 * w) - row[2 * i + 1].item()) < 5e-12


def test_wavelengths():
    got = rotation.wavelengths(rotation.inv_freq(64, 1e4))
    assert got[0].item() == pytest.approx(2 * np.pi, rel=1e-15)
    # the last one is 2 pi base^((d-2)/d), not 2 pi base
    assert got[-1].item() == pytest.approx(2 * np.pi * 1e4 ** (62 / 64), rel=1e-14)


def test_pairs_and_their_permutation():
    assert [d.tolist() for d in rotation.pair_dims(6, "half")] == [[0, 1, 2], [3, 4, 5]]
    assert [d.tolist() for d in rotation.pair_dims(6, "interleaved")] == [[0, 2, 4], [1, 3, 5]]
    assert rotation.permutation(6).tolist() == [0, 2, 4, 1, 3, 5]
    error = refused(rotation.pair_dims, 6, "thirds")
    assert str(error) == "`pairing` must be half or interleaved, got thirds"
    assert error.text("zh") == "`pairing` 必须是 half 或 interleaved，现在是 thirds"


@given(EVEN, BASES, st.integers(0, 200_000), st.integers(0, 2**31), st.sampled_from(PAIRINGS))
def test_rotation_keeps_the_norm(width, base, position, seed, pairing):
    x = vectors(width, seed)
    turned = encodings.make("rope", base=base, pairing=pairing).rotate(x, [position])
    assert turned.norm().item() == pytest.approx(x.norm().item(), rel=1e-13)


@given(EVEN, BASES, st.integers(0, 5000), st.integers(0, 5000), st.sampled_from(PAIRINGS))
def test_two_turns_are_one(width, base, p, s, pairing):
    spec = encodings.make("rope", base=base, pairing=pairing)
    x = vectors(width, p + s)
    twice = spec.rotate(spec.rotate(x, [p]), [s])
    torch.testing.assert_close(twice, spec.rotate(x, [p + s]), rtol=0, atol=1e-10)


@given(EVEN, BASES, st.integers(0, 5000), st.integers(0, 2**31))
def test_one_pairing_is_the_other_after_a_permutation(width, base, position, seed):
    x = vectors(width, seed)
    order = rotation.permutation(width)
    half = encodings.make("rope", base=base, pairing="half")
    interleaved = encodings.make("rope", base=base, pairing="interleaved")
    assert torch.equal(half.rotate(x[:, order], [position]), interleaved.rotate(x, [position])[:, order])


@given(EVEN, st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 99))
def test_products_depend_on_the_difference_only(width, m, n, shift, seed):
    spec = encodings.make("rope")
    q, k = vectors(width, seed), vectors(width, seed + 100)
    here = (spec.rotate(q, [m]) * spec.rotate(k, [n])).sum()
    there = (spec.rotate(q, [m + shift]) * spec.rotate(k, [n + shift])).sum()
    assert abs(here - there) < 1e-10


def test_position_zero_turns_nothing_and_a_copy_comes_back():
    x = vectors(8, 0, rows=3)
    for pairing in PAIRINGS:
        turned = encodings.make("rope", pairing=pairing).rotate(x, [0, 0, 0])
        assert torch.equal(turned, x)
        assert turned.data_ptr() != x.data_ptr()


def test_a_quarter_turn_by_hand():
    # one pair, (3, 4) turned by 90 degrees against the clock: (-4, 3)
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    theta = torch.tensor([[np.pi / 2]])
    expected = torch.tensor([[-4.0, 3.0]], dtype=torch.float64)
    for pairing in PAIRINGS:
        torch.testing.assert_close(rotation.rotate(x, theta, pairing), expected)
    # what lies behind the turned width passes unchanged
    y = torch.tensor([[3.0, 4.0, 5.0]], dtype=torch.float64)
    assert rotation.rotate(y, theta, "half")[0, 2] == 5.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_cosines_are_rounded_only_at_the_end(dtype):
    """Position 2000 in bfloat16: rounding the angle first would be wrong by O(1)."""
    x = torch.ones(1, 128, dtype=dtype)
    turned = encodings.make("rope").rotate(x, [2000])
    assert turned.dtype == dtype
    exact = encodings.make("rope").rotate(torch.ones(1, 128, dtype=torch.float64), [2000])
    assert (turned.double() - exact).abs().max() <= 2 * torch.finfo(dtype).eps


def test_whole_vectors_are_refused_not_rounded():
    error = refused(encodings.make("rope").rotate, torch.tensor([[1, 2, 3, 4]]), [1])
    assert str(error) == "the vectors to turn must be floating-point numbers, got int64"
    assert error.text("zh") == "要旋转的向量必须是浮点数，现在是 int64"


def read_only_array() -> np.ndarray:
    array = np.arange(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "positions",
    [
        [0, 1, 2],
        (0, 1, 2),
        range(3),
        np.arange(3),
        np.arange(3, dtype=np.int32),
        np.arange(3, dtype=np.uint16),
        np.arange(2, -1, -1)[::-1],
        read_only_array(),
        torch.arange(3),
        torch.arange(3, dtype=torch.int32),
        torch.arange(3, dtype=torch.uint8),
    ],
    ids=lambda p: f"{type(p).__name__}-{getattr(p, 'dtype', 'int')}",
)
def test_positions_in_every_form(positions):
    got = rotation.as_positions(positions)
    assert got.dtype == torch.int64
    assert got.tolist() == [0, 1, 2]


@pytest.mark.parametrize("empty", [[], (), range(0), np.array([], dtype=int), torch.arange(0)])
def test_no_positions_are_positions(empty):
    assert rotation.as_positions(empty).tolist() == []
    assert encodings.make("sinusoidal").table(empty, 8).shape == (0, 8)
    assert encodings.make("rope").rotate(torch.zeros(0, 8), empty).shape == (0, 8)


@pytest.mark.parametrize(
    ("positions", "english", "chinese"),
    [
        (
            [0, 1.5],
            "positions must be whole numbers, got float64",
            "位置必须是整数，现在是 float64",
        ),
        (
            torch.tensor([1.0]),
            "positions must be whole numbers, got float32",
            "位置必须是整数，现在是 float32",
        ),
        ([True], "positions must be whole numbers, got bool", "位置必须是整数，现在是 bool"),
        ([10**30], "positions must be whole numbers, got object", "位置必须是整数，现在是 object"),
        (
            [[1], [1, 2]],
            "positions must be whole numbers, got [[1], [1, 2]]",
            "位置必须是整数，现在是 [[1], [1, 2]]",
        ),
        (
            [2**63],
            "positions must be below 2^63, got 9223372036854775808",
            "位置必须小于 2^63，现在是 9223372036854775808",
        ),
        (["1"], "positions must be whole numbers, got <U1", "位置必须是整数，现在是 <U1"),
        ([3, -1], "positions must not be negative, got -1", "位置不能是负数，现在是 -1"),
        (
            5,
            "positions must have the shape (len,), got ()",
            "位置的形状必须是 (len,)，现在是 ()",
        ),
        (
            [[0, 1], [2, 3]],
            "positions must have the shape (len,), got (2, 2)",
            "位置的形状必须是 (len,)，现在是 (2, 2)",
        ),
    ],
    ids=range(10),
)
def test_other_positions_are_refused(positions, english, chinese):
    for use in (
        rotation.as_positions,
        lambda p: encodings.make("sinusoidal").table(p, 8),
        lambda p: encodings.make("rope").rotate(torch.zeros(2, 8), p),
    ):
        error = refused(use, positions)
        assert str(error) == english
        assert error.text("zh") == chinese


def test_positions_with_axes():
    assert rotation.as_positions([[0, 1], [2, 3]], axes=2).shape == (2, 2)
    assert str(refused(rotation.as_positions, [0, 1], axes=2)) == ("positions must have the shape (len, 2), got (2,)")


def test_positions_beyond_a_table_are_refused():
    assert rotation.as_positions([7], rows=8).tolist() == [7]
    error = refused(rotation.as_positions, [3, 8], rows=8)
    assert str(error) == ("position 8 lies beyond a learned table of 8 rows; allowed are 0 to 7")
    assert error.text("zh") == "位置 8 超出了只有 8 行的可学习表；允许 0 到 7"


@given(st.integers(1, 64), st.floats(0, 1, exclude_min=True))
def test_partial_rotation_turns_a_share_or_is_refused(d_head, factor):
    spec = encodings.make("rope", partial_rotary_factor=factor)
    try:
        width = spec.rotary_dim(d_head)
    except Refusal as error:
        turned = int(d_head * factor + 1e-9)
        assert d_head % 2 or turned % 2 or turned < 2
        assert error.field in ("d_head", "partial_rotary_factor")
        return
    assert width % 2 == 0
    assert 2 <= width <= d_head
    x = vectors(d_head, d_head)
    turned = spec.rotate(x, [3])
    assert torch.equal(turned[:, width:], x[:, width:])
    assert not torch.equal(turned[:, :width], x[:, :width])
    assert len(spec.inv_freq(d_head)) == width // 2
