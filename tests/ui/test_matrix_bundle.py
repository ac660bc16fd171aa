"""What the matrix component receives: small bundles, refusals, exact block means."""

import numpy as np
import pytest

from posviz.ui.canvas import matrix
from posviz.ui.canvas.matrix import Dense, Overview, Panel, Sinusoid, Thumbnail, Toeplitz
from tests.ui.unpacked import unpack


def _sinusoid(rows: int, d: int, **options) -> Sinusoid:
    omega = np.repeat(10000.0 ** (-2 * np.arange(d // 2) / d), 2)
    return Sinusoid(omega=omega, is_cos=np.tile([False, True], d // 2), rows=rows, **options)


def _panel(source: matrix.Source, **options) -> Panel:
    return Panel(**{"source": source, "vmin": -1.0, "vmax": 1.0, **options})


def _bundle(*panels: Panel, **options) -> bytes:
    return matrix.bundle(panels, labels={}, alt="a matrix", file="matrix", **options)


def test_a_large_sinusoid_is_small():
    data = _bundle(_panel(_sinusoid(5000, 1024), col_info=np.ones(1024)))
    assert len(data) < 100_000


def test_sinusoid_round_trip():
    source = _sinusoid(300, 64, start=7)
    panel = _panel(source, title="base 10000", ruler=[(0, "λ 6"), (np.int64(8), "λ 20")], row_start=7)
    meta, arrays = unpack(_bundle(panel, selected=(np.int64(3), 5)))
    got = meta["panels"][0]
    assert got["source"] == {"kind": "sinusoid", "start": 7, "wrap": False, "rows": 300, "cols": 64}
    assert (got["rows"], got["valid_rows"], got["row_start"], got["masked"]) == (300, 300, 7, False)
    assert got["ruler"] == [[0, "λ 6"], [8, "λ 20"]]
    assert meta["selected"] == [3, 5]
    np.testing.assert_array_equal(arrays["p0.omega"], source.omega)
    np.testing.assert_array_equal(arrays["p0.is_cos"], np.tile([0, 1], 32))


def test_every_kind_of_source_round_trips():
    dense = np.arange(12, dtype=np.float32).reshape(3, 4)
    profile = np.array([-2.0, -1.0, 0.0, -np.inf, -np.inf])
    meta, arrays = unpack(_bundle(_panel(Dense(values=dense)), _panel(Toeplitz(profile=profile, rows=3, cols=3))))
    assert [panel["source"]["kind"] for panel in meta["panels"]] == ["dense", "toeplitz"]
    assert [panel["masked"] for panel in meta["panels"]] == [False, True]
    np.testing.assert_array_equal(arrays["p0.values"], dense)
    np.testing.assert_array_equal(arrays["p1.profile"], profile)


def test_labels_fall_back_to_english_and_tokens_survive():
    tokens = ["<script>", "مرحبا", "a\0b", "\ud800", "👩‍👧"]
    data = matrix.bundle(
        [_panel(Dense(values=np.eye(5)), row_labels=tokens, col_labels=tokens)],
        labels={"masked": "已掩码"},
        alt="注意力",
        file="attention",
    )
    meta, _ = unpack(data)
    assert meta["labels"] == {**matrix.LABELS, "masked": "已掩码"}
    assert meta["panels"][0]["row_labels"] == meta["panels"][0]["col_labels"] == tokens


def test_two_panels_share_one_symmetric_scale():
    panels = _panel(_sinusoid(4, 4), vmin=-1, vmax=1), _panel(_sinusoid(4, 4), vmin=-3, vmax=0)
    meta, _ = unpack(_bundle(*panels))
    assert (meta["vmin"], meta["vmax"]) == (-3, 3)
    with pytest.raises(ValueError, match="share one scale, got signed and a"):
        _bundle(panels[0], _panel(_sinusoid(4, 4), scale="a", vmin=0))


def test_rows_beyond_the_table_are_declared_not_invented():
    meta, arrays = unpack(_bundle(_panel(Dense(values=np.zeros((128, 8))), rows=200)))
    assert (meta["panels"][0]["rows"], meta["panels"][0]["valid_rows"]) == (200, 128)
    assert arrays["p0.values"].shape == (128, 8)


def test_thumbnails():
    heads = [
        Thumbnail(label=f"head {h}", source=Toeplitz(profile=np.full(5, -h / 2), rows=3, cols=3)) for h in range(3)
    ]
    meta, arrays = unpack(_bundle(_panel(heads[1].source), thumbnails=heads, head=1))
    assert [thumbnail["label"] for thumbnail in meta["thumbnails"]] == [
        "head 0",
        "head 1",
        "head 2",
    ]
    assert meta["head"] == 1
    np.testing.assert_array_equal(arrays["t2.profile"], np.full(5, -1.0))
    with pytest.raises(ValueError, match="head must be below 3, the number of thumbnails, got 3"):
        _bundle(_panel(heads[1].source), thumbnails=heads, head=3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.0])
def test_a_scale_that_is_no_range_is_refused(bad):
    with pytest.raises(ValueError, match="vmin and vmax must be finite and vmin < vmax"):
        _panel(_sinusoid(4, 4), vmin=bad)


def test_nan_in_the_metadata_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        _bundle(_panel(_sinusoid(4, 4)), height=float("nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Dense(values=np.zeros(3)),
            "values must be a non-empty n x n array of float32 or float64",
        ),
        (lambda: Dense(values=np.zeros((0, 3))), "values must be a non-empty"),
        (lambda: Dense(values=np.zeros((2, 2), np.float16)), "got float16"),
        (
            lambda: Sinusoid(omega=np.ones(4), is_cos=np.ones(3, bool), rows=2),
            "is_cos must be a non-empty 4 array",
        ),
        (
            lambda: Sinusoid(omega=np.array([np.nan]), is_cos=np.ones(1, bool), rows=2),
            "omega must be finite",
        ),
        (
            lambda: Sinusoid(omega=np.ones(1), is_cos=np.ones(1, bool), rows=0),
            "rows must be at least 1, got 0",
        ),
        (
            lambda: Toeplitz(profile=np.ones(5), rows=3, cols=4),
            "profile must be a non-empty 6 array",
        ),
        (
            lambda: Overview(means=np.ones((2, 2), np.float32), block=(2, 2), rows=5, cols=4),
            "means must be a non-empty 3 x 2",
        ),
        (
            lambda: _panel(_sinusoid(4, 4), valid_rows=5),
            "valid_rows must be between 0 and the source's 4 rows, got 5",
        ),
        (lambda: _panel(_sinusoid(4, 4), scale="rainbow"), "scale must be one of signed"),
        (
            lambda: _panel(_sinusoid(4, 4), row_labels=["a"]),
            "row_labels must have 4 entries, got 1",
        ),
        (lambda: _bundle(), "panels must be one or two, got 0"),
    ],
)
def test_refusals_say_what_was_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("shape", [(50, 30), (51, 31), (1, 7)])
def test_block_means_are_numpy_means(shape):
    table = np.random.default_rng(0).normal(size=shape)
    means = matrix.block_means(table, (4, 3))
    for i in range(means.shape[0]):
        for j in range(means.shape[1]):
            expected = table[4 * i : 4 * i + 4, 3 * j : 3 * j + 3].mean()
            assert means[i, j] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_block_means_leave_masked_cells_out():
    table = np.array([[1.0, -np.inf, np.nan, np.nan], [3.0, np.nan, np.inf, np.nan]])
    np.testing.assert_array_equal(matrix.block_means(table, (2, 2)), np.array([[2.0, np.nan]], np.float32))


def test_overview_of_a_large_table():
    table = np.random.default_rng(1).normal(size=(5000, 1024)).astype(np.float32)
    source = matrix.overview(table, window=[100, 200, 0, 50], cross=(7, 9))
    assert (source.block, source.means.shape, source.shape) == ((5, 2), (1000, 512), (5000, 1024))
    np.testing.assert_array_equal(source.window, table[100:200, :50])
    np.testing.assert_array_equal(source.row_values, table[7])
    np.testing.assert_array_equal(source.col_values, table[:, 9])
    meta, arrays = unpack(_bundle(_panel(source)))
    spec = meta["panels"][0]["source"]
    assert (spec["kind"], spec["block"], spec["at"]) == ("overview", [5, 2], [100, 0])
    assert (spec["row"], spec["col"], spec["rows"], spec["cols"]) == (7, 9, 5000, 1024)
    np.testing.assert_array_equal(arrays["p0.window"], table[100:200, :50])


@pytest.mark.parametrize(
    "value",
    [
        None,
        "0,1,2,3",
        {"r0": 0},
        [0, 1, 2],
        [0, 1, 2, "3"],
        [0, 1, 2, None],
        [0, float("nan"), 0, 1],
        [0, True, 0, 1],
        [5, 5, 0, 9],
        [200, 300, 0, 9],
        [0, 10**9, 0, 10**9],
    ],
)
def test_a_window_from_the_browser_is_checked(value):
    assert matrix.window_of(value, (100, 20_000)) is None


def test_a_window_is_clipped_to_the_table():
    assert matrix.window_of([-5, 1000, 2.0, 4], (100, 20)) == (0, 100, 2, 4)
