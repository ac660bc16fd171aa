"""What the Similarity picture receives: shapes, colours and labels, and the refusals."""

import re
from pathlib import Path

import numpy as np
import pytest

from posviz.ui.canvas import ripple
from posviz.ui.canvas.bundle import script, standalone_html, style
from posviz.ui.canvas.ripple import CURVE_COLOURS, LABELS, Curve, bundle
from tests.ui.unpacked import unpack

_CANVAS = Path(ripple.__file__).parent


def _sinusoidal(d: int, length: int) -> np.ndarray:
    """mean[k] = sum over i of cos(k w_i), shape (length,)."""
    omega = 1e4 ** (-2 * np.arange(d // 2) / d)
    return np.cos(np.arange(length)[:, None] * omega).sum(1)


def _curve(mean: np.ndarray, **options) -> Curve:
    rises = np.flatnonzero(np.diff(mean) > 0).astype(np.int32)
    return Curve(
        **{
            "label": "sinusoidal",
            "mean": mean,
            "spread": np.zeros(len(mean)),
            "rises": rises,
            **options,
        }
    )


def _bundle(length: int = 64, **options) -> bytes:
    mean = _sinusoidal(128, length)
    settings = {
        "curves": [_curve(mean, colour=1)],
        "matrix": np.concatenate([mean[:0:-1], mean]),
        "selected_curve": 0,
        "position": length // 4,
        "kind": "dot",
        "length": length,
        "labels": {},
        "alt": "similarity",
        "file": "ripple",
    }
    return bundle(**{**settings, **options})


def test_arrays_arrive_as_they_were():
    mean = _sinusoidal(128, 64)
    meta, arrays = unpack(_bundle())
    assert arrays["mean0"].dtype == np.float64
    np.testing.assert_array_equal(arrays["mean0"], mean)
    assert arrays["rises0"][0] == 11  # the first rise for d = 128, base 1e4
    assert arrays["matrix"].shape == (127,)
    assert arrays["matrix"].dtype == np.float64
    np.testing.assert_array_equal(arrays["matrix"][63 + 11], mean[11])
    assert (meta["position"], meta["length"], meta["selected"], meta["kind"]) == (16, 64, 0, "dot")


def test_a_dense_matrix_is_sent_as_float32():
    table = np.random.default_rng(0).normal(size=(64, 8))
    _, arrays = unpack(_bundle(matrix=table @ table.T))
    assert arrays["matrix"].shape == (64, 64)
    assert arrays["matrix"].dtype == np.float32
    np.testing.assert_allclose(arrays["matrix"], table @ table.T, rtol=1e-6)


def test_a_masked_matrix_is_allowed():
    matrix = np.triu(np.full((64, 64), -np.inf), 1)
    _, arrays = unpack(_bundle(matrix=matrix))
    assert np.isneginf(arrays["matrix"][0, 1])


def test_a_two_sided_curve_on_the_right_axis():
    k = np.arange(-63, 64)
    curve = Curve(
        "t5",
        -0.5 * (k > 0) * k,
        np.zeros(127),
        np.array([-3, 7], np.int32),
        "right",
        5,
        two_sided=True,
    )
    meta, arrays = unpack(_bundle(curves=[curve]))
    entry = meta["curves"][0]
    assert (entry["axis"], entry["two_sided"]) == ("right", True)
    assert arrays["mean0"].shape == (127,)
    np.testing.assert_array_equal(arrays["rises0"], [-3, 7])


def test_large_pictures_of_relative_encodings_stay_small():
    assert len(_bundle(length=4096)) < 200_000  # a dense matrix would be 67 MB


def test_colours_are_stable_readable_and_unlike_the_fixed_ones():
    def luminance(rgb):
        c = np.array(rgb) / 255
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    def contrast(a, b):
        high, low = sorted((luminance(a), luminance(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    fixed = [(31, 79, 191), (180, 86, 10), (15, 157, 138), (138, 143, 152)]
    for light, dark in CURVE_COLOURS:
        assert contrast(light, (255, 255, 255)) >= 4.5
        assert contrast(dark, (18, 21, 28)) >= 4.5
        assert min(np.abs(np.subtract(light, other)).sum() for other in fixed) > 60
    assert _curve(np.ones(4), colour=1).colours() == _curve(np.ones(4), colour=1 + len(CURVE_COLOURS)).colours()
    # 28 encodings differ in hue or in dashes (four of them)
    looks = [(i % len(CURVE_COLOURS), (i + 3) % 4) for i in range(28)]
    assert len(set(looks)) == 28
    assert _curve(np.ones(4), colour=(1, 2, 3)).colours() == ((1, 2, 3), (1, 2, 3))


def test_labels_are_the_ones_the_script_uses():
    code = "".join((_CANVAS / name).read_text("utf-8") for name in ("ripple.js", "parts/ripple_picture.js"))
    used = set(re.findall(r"this\.label\.(\w+)", code)) | {
        "value",
        "value_bias",
        "dot",
        "cosine",
        "scaled",
    }
    used |= {"save", "both", "log"}  # looked up by name
    assert used == set(LABELS)
    meta, _ = unpack(_bundle(labels={"distance": "距离 k"}))
    assert meta["labels"]["distance"] == "距离 k"
    assert meta["labels"]["never"] == LABELS["never"]


def test_the_script_carries_its_parts_and_the_page_stands_alone():
    text = script("ripple")
    assert text.count("class RippleView extends RipplePicture") == 1
    assert text.index("class RipplePicture") < text.index("class RippleView")
    assert "min-height" in style("ripple")
    page = standalone_html("ripple", _bundle(), title="<b>", caption="")
    assert "&lt;b&gt;" in page
    assert "export default" not in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"selected_curve": 1},
            "selected_curve must be one of the 1 curves, counted from 0, got 1",
        ),
        ({"curves": []}, "selected_curve must be one of the 0 curves"),
        ({"position": 64}, "position must be from 0 to 63, got 64"),
        ({"kind": "euclid"}, "kind must be 'dot', 'cosine' or 'scaled', got 'euclid'"),
        (
            {"matrix": np.zeros((64, 63))},
            r"matrix must be \(L, L\) or a profile \(2L-1,\) with L = 64",
        ),
        ({"matrix": np.zeros(64)}, r"got shape \(64,\)"),
    ],
)
def test_a_bad_bundle_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _bundle(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"spread": np.zeros(3)},
            "spread of 'sinusoidal' must be zero or positive and as long as mean",
        ),
        ({"spread": -np.ones(4)}, "zero or positive"),
        ({"mean": np.array([1, np.nan, 0, 0])}, "mean must be one finite number per distance"),
        ({"two_sided": True}, "an odd number, got 4"),
        ({"axis": "top"}, "axis must be 'left' or 'right', got 'top'"),
        ({"rises": np.array([4], np.int32)}, "rises of 'sinusoidal' must be distances from 0 to 3"),
    ],
)
def test_a_bad_curve_is_refused(options, message):
    settings = {
        "label": "sinusoidal",
        "mean": np.ones(4),
        "spread": np.zeros(4),
        "rises": np.zeros(0, np.int32),
    }
    with pytest.raises(ValueError, match=message):
        Curve(**{**settings, **options})
