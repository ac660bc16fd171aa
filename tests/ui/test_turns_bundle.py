"""The data of the films beside the one rotation: what goes in comes out, what does not fit is refused."""

import re
from typing import Any

import numpy as np
import pytest

from posviz.ui.canvas import pairing, turns
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.turns import Bases, Side
from tests.ui.unpacked import unpack

W = 100.0 ** -(np.arange(4) / 4)
TOKENS = [{"label": "我·0", "sentence": "A", "position": 0}, {"label": "爱·1", "sentence": "B", "position": 1}]


def side(**changes: Any) -> Side:
    return Side(**{"title": "x", "omega": W, "q": np.arange(8.0), "k": np.ones(8), "scale": 0.5, "met": W} | changes)


def arguments(**changes: Any) -> dict[str, Any]:
    given = {"sides": [side(), side(omega=W / 4)], "mode": "two", "max_position": 100, "m": 9, "n": 5, "pair": 3}
    return given | {"tokens": TOKENS} | changes


def bases(**changes: Any) -> Bases:
    given = {"bases": np.array([100.0, 200.0]), "frequencies": np.stack([W, W / 2])}
    given |= {"critical": np.array([8, 6]), "bounds": np.array([4, 0]), "notch": 1, "per_decade": 50, "home": (8, 3)}
    return Bases(**given | changes)


def test_two_sides_go_round() -> None:
    meta, arrays = unpack(turns.bundle(**arguments()))
    np.testing.assert_array_equal(arrays["omega1"], W / 4)
    np.testing.assert_array_equal(arrays["q0"], np.arange(8.0))
    np.testing.assert_array_equal(arrays["met0"], W)
    assert [one["letter"] for one in meta["sides"]] == ["A", "B"]
    assert (meta["m"], meta["n"], meta["pair"], meta["notch"]) == (9, 5, 3, 0)
    assert meta["tokens"] == TOKENS


def test_bases_and_digits_go_round() -> None:
    plain = [side(met=None), side(met=None, title="")]
    meta, arrays = unpack(turns.bundle(**arguments(sides=plain, mode="base", bases=bases())))
    assert (meta["notch"], meta["per_decade"], meta["home"]) == (1, 50, [8, 3])
    np.testing.assert_array_equal(arrays["frequencies"][1], W / 2)
    assert arrays["bounds"].tolist() == [4, 0]
    meta, arrays = unpack(turns.bundle(**arguments(sides=plain, mode="digits", narrow=W * 1.01, rounded="angle")))
    np.testing.assert_array_equal(arrays["narrow"], W * 1.01)
    assert meta["rounded"] == "angle"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "three"}, "mode must be one of two, base, digits, got 'three'"),
        ({"sides": [side()]}, "two sides are shown, got 1"),
        ({"sides": [side(), side(q=np.ones(6), k=np.ones(6))]}, "do not fit 6 and 6 dimensions"),
        ({"sides": [side(), side(omega=W * np.nan)]}, "numbers must be finite"),
        ({"sides": [side(), side(met=None)]}, "met is one number for each pair"),
        ({"tokens": TOKENS[:1]}, "tokens must be the query and the key, got 1"),
        ({"m": 101}, "m must be from 0 to 100, got 101"),
        ({"pair": 4}, "pair must be from 0 to 3, got 4"),
        ({"labels": {}}, "labels lacks play"),
        ({"bases": bases()}, "bases are for mode base"),
        ({"narrow": W}, "narrow frequencies and what is rounded are for mode digits"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        turns.bundle(**arguments(**changes))


def test_bases_must_have_their_frequencies() -> None:
    plain = [side(met=None), side(met=None)]
    with pytest.raises(ValueError, match="do not fit 2 bases"):
        turns.bundle(**arguments(sides=plain, mode="base", bases=bases(frequencies=W[None])))


def order(**changes: Any) -> pairing.Order:
    dims = np.array([[0, 1], [2, 3]])
    return pairing.Order(**{"dims": dims, "x": np.arange(5.0), "y": np.arange(5.0)} | changes)


def test_the_pairings_go_round_and_are_checked() -> None:
    half = order(dims=np.array([[0, 2], [1, 3]]))
    given = {"permutation": np.array([0, 2, 1, 3]), "pair": 1}
    meta, arrays = unpack(pairing.bundle(order(), half, **given))
    assert arrays["permutation"].tolist() == [0, 2, 1, 3] and arrays["half"].tolist() == [0, 2, 1, 3]
    assert meta["pair"] == 1
    with pytest.raises(ValueError, match="pair must be from 0 to 1, got 2"):
        pairing.bundle(order(), half, **given | {"pair": 2})
    with pytest.raises(ValueError, match="do not fit 2 dimensions"):
        pairing.bundle(order(), half, **given | {"permutation": np.array([0, 1])})
    with pytest.raises(ValueError, match="equally long"):
        pairing.bundle(order(), order(x=np.ones(4)), **given)
    with pytest.raises(ValueError, match="labels lacks play"):
        pairing.bundle(order(), half, **given, labels={})


@pytest.mark.parametrize(
    ("name", "module", "start"), [("turns", turns, "class Rotor"), ("pairing", pairing, "class Rotor")]
)
def test_every_label_is_used_and_every_used_label_exists(name: str, module: Any, start: str) -> None:
    own = script(name).split(start, 1)[1]
    if name == "pairing":  # of the clocks' panels it needs the drawing alone
        own = own[: own.index("class ClockGrid")] + own[own.index("class PairingView") :]
        used = set(re.findall(r"label\.(\w+)", own)) | {"interleaved", "half"}
    else:  # its grids and heads are its own
        parts = [own[: own.index("class ClockGrid")], own[own.index("class SideHead") :]]
        used = set(re.findall(r"label\.(\w+)", "".join(parts)))
    assert used | {"save"} == set(module.LABELS)


def test_saved_pages_hold_their_parts() -> None:
    page = standalone_html("turns", turns.bundle(**arguments()), title="T")
    for part in ("class FilmView", "class SideGrid", "class ScoreStrip", "class NarrowRotor", "class GifWriter"):
        assert part in page
    assert not re.search(r"(src|href)=[\"']https?:", page)
