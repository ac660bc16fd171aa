"""The data of the RoPE workbench's pictures: what goes in comes out, and what does not fit is refused."""

import re

import numpy as np
import pytest

from posviz.ui.canvas import arcs, plots, ripple
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.plots import Mark, Plot, Series
from tests.ui.unpacked import unpack


def line(**changes) -> Series:
    return Series(**{"label": "x", "x": np.arange(3.0), "y": np.array([1.0, np.nan, 2.0]), "colour": "a"} | changes)


def plot(**changes) -> Plot:
    return Plot(**{"title": "t", "x_label": "x", "series": [line()], "x_range": (0, 2), "y_range": (0.5, 3)} | changes)


def test_round_trip() -> None:
    band = line(x=np.array([1.0, 2.0, 5.0]), y=np.zeros(2), high=np.ones(2), style="band", colour=2)
    made = plot(series=[line(), band], marks=[Mark(1.5, "here", "b", "y")], y_ticks=[(1, "one")], y_log=True)
    meta, arrays = unpack(plots.bundle([made, plot()], name="two"))
    assert (meta["name"], len(meta["plots"])) == ("two", 2)
    described = meta["plots"][0]
    assert described["marks"] == [{"at": 1.5, "label": "here", "colour": "b", "axis": "y"}]
    assert described["y_ticks"] == [[1.0, "one"]]
    assert [one["style"] for one in described["series"]] == ["line", "band"]
    np.testing.assert_array_equal(arrays["y0.0"], [1.0, np.nan, 2.0])
    np.testing.assert_array_equal(arrays["x0.1"], [1.0, 2.0, 5.0])
    np.testing.assert_array_equal(arrays["high0.1"], [1.0, 1.0])
    assert "high0.0" not in arrays


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: line(style="bars"), "style must be one of line, dots, rings, band, got 'bars'"),
        (lambda: line(style="band"), "'x': a band has high values, others have none"),
        (lambda: line(high=np.ones(3)), "'x': a band has high values, others have none"),
        (lambda: line(x=np.arange(4.0)), "'x': 4 places for 3 values"),
        (lambda: line(x=np.array([0.0, 0.0, 1.0])), "'x': x must rise"),
        (lambda: plot(x_range=(2, 2)), "x_range must rise, got 2 to 2"),
        (lambda: plot(y_range=(0, 2), y_log=True), "y_range must rise above 0, got 0 to 2"),
        (lambda: plot(series=[]), "a plot needs a series"),
        (lambda: plots.bundle([plot()], name="x", labels={"save": "s"}), "labels lacks hint, between"),
        (lambda: arcs.bundle([]), "one or two rings, got 0"),
        (lambda: arcs.bundle([ring()], labels={}), "labels lacks save"),
        (lambda: arcs.bundle([ring(after=np.ones(3))]), "'r': one number for each of 1 to 4096 pairs, got [2, 3]"),
    ],
    ids=range(12),
)
def test_refuses(make, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def ring(**changes) -> arcs.Ring:
    two = np.array([1.0, 0.5])
    return arcs.Ring(**{"name": "r", "trained": two, "wanted": 2 * two, "before": 6 * two, "after": two} | changes)


def test_rings_travel() -> None:
    meta, arrays = unpack(arcs.bundle([ring(), ring(name="</script>", before=np.array([6.0, np.inf]))]))
    assert meta["rings"] == ["r", "</script>"]
    np.testing.assert_array_equal(arrays["wanted0"], [2.0, 1.0])
    np.testing.assert_array_equal(arrays["before1"], [6.0, np.inf])


@pytest.mark.parametrize(("name", "module"), [("plots", plots), ("arcs", arcs)])
def test_every_label_is_used_and_every_used_label_exists(name: str, module) -> None:
    used = set(re.findall(r"label\.(\w+)", script(name).split("class View", 1)[1]))
    assert used >= set(module.LABELS)
    page = standalone_html(
        name, arcs.bundle([ring()]) if name == "arcs" else plots.bundle([plot()], name="p"), title="<T>"
    )
    assert "&lt;T&gt;" in page and f"class {name.capitalize()}View" in page


def test_both_pictures_use_one_set_of_curve_colours() -> None:
    numbers = [
        int(x)
        for x in re.findall(r"\d+", script("plots").split("const CURVES", 1)[1].split("]\n\n", 1)[0].split("\n]", 1)[0])
    ]
    assert numbers == [value for pair in ripple.CURVE_COLOURS for colour in pair for value in colour]
