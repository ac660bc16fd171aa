"""The arrays behind the pictures: cheap descriptions that are still exact."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, encodings, rotation, similarity, text, views
from posviz.types import Dims, Refusal

DIMS = Dims(d_model=16, n_heads=4)
NAMES = list(encodings.ENCODINGS)
PICTURES = [(name, view) for name in NAMES for view in encodings.ENCODINGS[name].pictures]
SPECS = {
    "alibi-causal": encodings.make("alibi", causal=True),
    "t5-causal": encodings.make("t5", bidirectional=False),
    "rope-partial": encodings.make("rope", partial_rotary_factor=0.5),
    **{name: encodings.make(name) for name in NAMES},
}
ALL_SPECS = [pytest.param(spec, id=name) for name, spec in SPECS.items()]


def refused(function, *args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        function(*args, **kwargs)
    return caught.value


# ---- windows


def source(kind: str, rows: int, cols: int):
    generator = np.random.default_rng(0)
    if kind == "cells":
        return views.Cells(generator.normal(size=(rows, cols)))
    if kind == "diagonals":
        return views.Diagonals(rows, generator.normal(size=2 * rows - 1))
    frequencies = generator.uniform(0, 1, cols)
    return views.Waves(rows, frequencies, generator.random(cols) < 0.5, wrap=kind == "angles")


@pytest.mark.parametrize("kind", ["waves", "angles", "diagonals", "cells"])
@given(st.integers(1, 40), st.integers(1, 30), st.data())
def test_a_window_is_cut_from_the_whole(kind, rows, cols, data):
    cells = source(kind, rows, cols)
    assert cells.shape == (rows, rows if kind == "diagonals" else cols)
    r0, r1 = sorted(data.draw(st.tuples(*[st.integers(0, cells.shape[0])] * 2)))
    c0, c1 = sorted(data.draw(st.tuples(*[st.integers(0, cells.shape[1])] * 2)))
    whole = cells.cells(0, cells.shape[0], 0, cells.shape[1])
    window = cells.cells(r0, r1, c0, c1)
    assert window.shape == (r1 - r0, c1 - c0)
    np.testing.assert_array_equal(window, whole[r0:r1, c0:c1])


def test_waves_by_hand():
    waves = views.Waves(4, np.array([1.0, 0.5]), np.array([False, True]))
    expected = [[np.sin(p), np.cos(0.5 * p)] for p in range(4)]
    np.testing.assert_array_equal(waves.cells(0, 4, 0, 2), expected)
    turned = views.Waves(5, np.array([np.pi / 2]), np.array([False]), wrap=True)
    np.testing.assert_allclose(turned.cells(0, 5, 0, 1)[:, 0] / np.pi, [0, 0.5, -1, -0.5, 0], rtol=0, atol=1e-15)


def test_diagonals_by_hand():
    # key - query runs from -2 to 2
    cells = views.Diagonals(3, np.array([20.0, 10, 0, 1, 2]))
    np.testing.assert_array_equal(cells.cells(0, 3, 0, 3), [[0, 1, 2], [10, 0, 1], [20, 10, 0]])


# ---- pictures


@pytest.mark.parametrize(("name", "view"), PICTURES)
def test_every_picture(name, view):
    picture = views.picture(encodings.make(name), DIMS, 12, view=view, seed=3)
    assert picture.view == view
    assert len(picture.sources) == (4 if view == "bias" else 1)
    for head in range(len(picture.sources)):
        values = picture.values(head)
        assert values.shape == picture.shape
        assert np.isfinite(values).all()
        assert np.abs(values).max() <= picture.limit
    assert picture.limit > 0
    assert picture.defined_rows == picture.shape[0]
    turning = view != "grid" and (encodings.ENCODINGS[name].kind == "rotary" or name == "sinusoidal")
    assert (picture.wavelengths is not None) == turning
    if turning:
        assert picture.wavelengths.shape == (picture.shape[1],)


def test_the_first_picture_is_the_default():
    for name in NAMES:
        spec = encodings.make(name)
        picture = views.picture(spec, DIMS, 8)
        assert (picture.view if picture else None) == next(iter(spec.pictures), None)
    assert views.picture(encodings.make("none"), DIMS, 8) is None


def test_tables_are_the_encodings_own():
    for layout in ("interleaved", "halves"):
        spec = encodings.make("sinusoidal", base=77.0, layout=layout)
        picture = views.picture(spec, DIMS, 300)
        np.testing.assert_allclose(picture.values(), spec.table(range(300), 16), rtol=0, atol=1e-13)
        assert picture.limit == 1
        frequencies, _ = spec.columns(16)
        np.testing.assert_array_equal(picture.wavelengths, rotation.wavelengths(frequencies))
    learned = encodings.make("learned")
    module = learned.build(DIMS, 9, torch.Generator().manual_seed(5))
    picture = views.picture(learned, DIMS, 9, seed=5)
    np.testing.assert_array_equal(picture.values(), module.weight.detach())
    assert picture.limit == module.weight.abs().max().item()


def test_rotation_pictures_are_the_angles_of_rope():
    spec = encodings.make("rope", base=100.0, partial_rotary_factor=0.5)
    theta = rotation.angles(torch.arange(20), spec.inv_freq(4))
    np.testing.assert_allclose(views.picture(spec, DIMS, 20, view="cos").values(), theta.cos(), rtol=0, atol=1e-14)
    np.testing.assert_allclose(views.picture(spec, DIMS, 20, view="sin").values(), theta.sin(), rtol=0, atol=1e-14)
    angle = views.picture(spec, DIMS, 20, view="angle")
    assert angle.limit == np.pi
    wrapped = angle.values()
    np.testing.assert_allclose(np.exp(1j * wrapped), np.exp(1j * theta.numpy()), atol=1e-13)
    assert wrapped.min() >= -np.pi and wrapped.max() <= np.pi


@pytest.mark.parametrize("spec", [p for p in ALL_SPECS if p.values[0].kind == "bias"])
def test_bias_pictures_are_what_attention_adds(spec):
    """Cell by cell the bias of the module; Shaw's, which looks at content, for ones."""
    module = spec.build(DIMS, 12, torch.Generator().manual_seed(2)).double()
    ones = torch.ones(4, 12, 4, dtype=torch.float64)
    with torch.no_grad():
        whole = module.bias(ones, ones, range(12), range(12)).expand(4, 12, 12).numpy().copy()
    if spec.needs_causal_mask:
        whole[:, np.triu(np.ones((12, 12), bool), 1)] = np.nan
    profiles = views.bias_profiles(module, 12)
    for head in range(4):
        drawn = views.Diagonals(12, profiles[head]).cells(0, 12, 0, 12)
        np.testing.assert_allclose(drawn, whole[head], rtol=0, atol=1e-15)
        if "bias" in spec.pictures:
            picture = views.picture(spec, DIMS, 12, seed=2)
            np.testing.assert_array_equal(picture.values(head), drawn)
            assert picture.limit == np.nanmax(np.abs(profiles))
    if not spec.capabilities.content and not spec.needs_causal_mask:
        trace = attention.attend(text.tokenize("a" * 12), spec, DIMS, seed=2)
        np.testing.assert_allclose(trace.bias, whole, rtol=0, atol=1e-15)


def test_a_picture_of_nothing_keeps_a_scale():
    # one position, ALiBi: a single cell of 0
    picture = views.picture(encodings.make("alibi"), DIMS, 1)
    np.testing.assert_array_equal(picture.values(), [[0]])
    assert picture.limit == 1


def test_shaws_table_is_named_by_distance():
    spec = encodings.make("shaw", max_relative=3)
    picture = views.picture(spec, DIMS, 100, seed=1)
    assert picture.shape == (7, 4)
    assert picture.first_row == -3
    weight = spec.build(DIMS, 100, torch.Generator().manual_seed(1)).weight
    np.testing.assert_array_equal(picture.values(), weight.detach())
    assert picture.limit == weight.abs().max().item()


def test_beyond_a_learned_table_there_is_nothing():
    learned = views.picture(encodings.make("learned"), DIMS, 5, rows=8)
    assert learned.shape == (8, 16)
    assert learned.defined_rows == 5
    assert learned.values().shape == (5, 16)
    beyond = learned.sources[0].cells(5, 8, 0, 16)
    assert np.isnan(beyond).all()
    np.testing.assert_array_equal(learned.values(), views.picture(encodings.make("learned"), DIMS, 5).values())
    assert np.isfinite(learned.limit)
    sinusoidal = views.picture(encodings.make("sinusoidal"), DIMS, 5, rows=8)
    assert sinusoidal.defined_rows == 8
    assert views.picture(encodings.make("learned"), DIMS, 5, rows=3).values().shape == (3, 16)


def test_the_largest_picture_is_a_few_kilobytes():
    dims = Dims(d_model=1024, n_heads=64)
    picture = views.picture(encodings.make("sinusoidal"), dims, 8192)
    assert picture.shape == (8192, 1024)
    assert picture.sources[0].frequencies.nbytes + picture.sources[0].is_cos.nbytes < 10_000
    window = picture.sources[0].cells(8190, 8192, 1000, 1024)
    expected = encodings.make("sinusoidal").table([8190, 8191], 1024)[:, 1000:]
    np.testing.assert_allclose(window, expected, rtol=0, atol=1e-12)
    bias = views.picture(encodings.make("alibi"), dims, 2048)
    assert sum(s.profile.nbytes for s in bias.sources) == 64 * 4095 * 8


def test_what_pages_receive_cannot_be_changed():
    for name, view in PICTURES:
        picture = views.picture(encodings.make(name), DIMS, 8, view=view)
        for cells in picture.sources:
            for field in ("frequencies", "is_cos", "profile", "values"):
                array = getattr(cells, field, None)
                assert not isinstance(array, np.ndarray) or not array.flags.writeable
        assert picture.wavelengths is None or not picture.wavelengths.flags.writeable
    for spec in SPECS.values():
        found = views.alikeness(spec, DIMS, 8)
        for array in (found.distances, found.mean, found.spread, found.rises):
            assert not array.flags.writeable


@pytest.mark.parametrize(("bad", "quoted"), [("cos", "cos"), ("", ""), ("<b>", "<b>"), (3, "3")])
def test_unknown_pictures_are_refused(bad, quoted):
    error = refused(views.picture, encodings.make("learned"), DIMS, 8, view=bad)
    assert str(error) == f"`picture` of learned must be one of table, got {quoted}"
    assert error.text("zh") == f"可学习 的 `picture` 只能是 table 之一，现在是 {quoted}"


@pytest.mark.parametrize("bad", [0, -1, 16_385, 1.0, "8", True])
def test_rows_are_checked(bad):
    error = refused(views.picture, encodings.make("learned"), DIMS, 8, rows=bad)
    assert str(error) == f"`rows` must be a whole number from 1 to 16384, got {bad!r}"


def test_squares_have_a_limit():
    for use in (
        lambda n: views.picture(encodings.make("alibi"), DIMS, n),
        lambda n: views.alikeness(encodings.make("sinusoidal"), DIMS, n),
    ):
        error = refused(use, 2049)
        assert str(error) == ("a position-by-position matrix is drawn for up to 2048 positions, got `max_len` 2049")
        assert error.text("zh") == "位置×位置的矩阵最多画 2048 个位置，现在 `max_len` 是 2049"


@pytest.mark.parametrize("bad", [0, -3, 8193, 4.0, "4", None])
def test_lengths_are_checked(bad):
    error = refused(views.alikeness, encodings.make("sinusoidal"), DIMS, bad)
    assert str(error) == f"`max_len` must be a whole number from 1 to 8192, got {bad!r}"


@pytest.mark.parametrize("bad", [4, -1, 0.0, "0", None])
def test_heads_are_checked_where_they_matter(bad):
    error = refused(views.alikeness, encodings.make("alibi"), DIMS, 8, head=bad)
    assert str(error) == f"`head` must be a whole number from 0 to 3, got {bad!r}"
    assert error.text("zh") == f"`head` 必须是 0 到 3 的整数，现在是 {bad!r}"


def test_sizes_an_encoding_cannot_have_are_refused_here_too():
    error = refused(views.picture, encodings.make("rope"), Dims(d_model=28, n_heads=4), 8)
    assert str(error) == ("`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32")


# ---- alikeness


@pytest.mark.parametrize("kind", similarity.KINDS)
@pytest.mark.parametrize("spec", ALL_SPECS)
def test_alikeness_is_the_mean_and_spread_of_its_own_matrix(spec, kind):
    length = 24
    found = views.alikeness(spec, DIMS, length, kind=kind, head=2, seed=1)
    assert found.matrix.shape == (length, length)
    assert found.is_bias == (spec.kind == "bias")
    square = found.matrix.cells(0, length, 0, length)
    for k, mean, spread in zip(found.distances, found.mean, found.spread, strict=True):
        # a causal bias is defined for keys before the query
        line = np.diagonal(square, -k if spec.needs_causal_mask else k)
        assert mean == pytest.approx(line.mean(), abs=1e-12)
        assert spread == pytest.approx(line.std(), abs=1e-12)
    start = -length + 1 if found.two_sided else 0
    assert found.distances.tolist() == list(range(start, length))
    right = found.mean[found.distances >= 0]
    left = found.mean[found.distances <= 0][::-1]
    away = [-k for k in similarity.rises(left)[::-1]] if found.two_sided else []
    assert found.rises.tolist() == away + similarity.rises(right).tolist()


def test_which_encodings_have_two_sides():
    two_sided = {name for name, spec in SPECS.items() if views.alikeness(spec, DIMS, 24).two_sided}
    assert two_sided == {"t5", "t5-causal", "shaw", "transformer_xl", "conformer", "deberta", "xpos"}


def test_zero_spread_means_purely_relative():
    for name, spec in SPECS.items():
        spread = views.alikeness(spec, DIMS, 24).spread
        if name == "learned":
            assert (spread[1:-1] > 1e-5).all()
        elif name == "sinusoidal" or spec.capabilities.relative:
            assert np.abs(spread).max() < 1e-12


def test_alikeness_of_the_additive_ones_is_that_of_their_tables():
    for kind in similarity.KINDS:
        found = views.alikeness(encodings.make("sinusoidal"), DIMS, 30, kind=kind)
        table = encodings.make("sinusoidal").table(range(30), 16)
        np.testing.assert_allclose(found.matrix.cells(0, 30, 0, 30), similarity.matrix(table, kind), rtol=0, atol=1e-13)
        found = views.alikeness(encodings.make("learned"), DIMS, 30, kind=kind, seed=8, max_len=30)
        weight = encodings.make("learned").build(DIMS, 30, torch.Generator().manual_seed(8)).weight
        np.testing.assert_allclose(
            found.matrix.cells(0, 30, 0, 30), similarity.matrix(weight, kind), rtol=0, atol=1e-15
        )


def test_alikeness_of_rope_is_measured_on_turned_vectors():
    """One vector at every pair of positions, turned for real: the matrix has no spread."""
    spec = encodings.make("rope", base=300.0)
    x = torch.full((40, 4), 0.5**0.5, dtype=torch.float64)
    turned = spec.rotate(x, range(40))
    found = views.alikeness(spec, DIMS, 40)
    np.testing.assert_allclose(found.matrix.cells(0, 40, 0, 40), similarity.matrix(turned), rtol=0, atol=1e-13)
    kernel = similarity.rope_kernel(range(40), spec.inv_freq(4)) * 2  # d_head / 2 pairs
    np.testing.assert_allclose(found.mean, kernel, rtol=0, atol=1e-13)
    for kind in ("cosine", "scaled"):
        other = views.alikeness(spec, DIMS, 40, kind=kind)
        np.testing.assert_allclose(other.mean, kernel / 2, rtol=0, atol=1e-13)


def test_dimensions_that_do_not_turn_count_as_alike():
    half = encodings.make("rope", partial_rotary_factor=0.5)
    found = views.alikeness(half, DIMS, 40)
    # one turning pair: 2 * 1/2 cos k; two dimensions that stay: 2 * 1/2
    np.testing.assert_allclose(found.mean, 1 + np.cos(np.arange(40)), rtol=0, atol=1e-13)


def test_alikeness_of_a_bias_is_the_bias_of_its_head():
    for head in range(4):
        slope = encodings.make("alibi").slopes(4)[head].item()
        for spec in (SPECS["alibi"], SPECS["alibi-causal"]):
            found = views.alikeness(spec, DIMS, 9, head=head, kind="cosine")
            np.testing.assert_allclose(found.mean, -slope * np.arange(9), rtol=0, atol=1e-15)
            assert found.rises.tolist() == []
    none = views.alikeness(encodings.make("none"), DIMS, 9)
    np.testing.assert_array_equal(none.mean, 0)


@pytest.mark.parametrize("spec", ALL_SPECS)
def test_one_position_is_a_picture_too(spec):
    found = views.alikeness(spec, DIMS, 1)
    assert found.distances.tolist() == [0]
    assert found.mean.shape == found.spread.shape == (1,)
    assert found.rises.tolist() == []
    picture = views.picture(spec, DIMS, 1)
    assert picture is None or picture.limit > 0
