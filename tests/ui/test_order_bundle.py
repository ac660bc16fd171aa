"""What the Order picture receives: outputs, matches and bars survive the trip; nonsense is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from posviz.ui.canvas import order
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.order import LABELS, MAX_TOKENS, bundle
from tests.ui.unpacked import unpack

_CANVAS = Path(order.__file__).parent


def _panel(rows_a: int, rows_b: int, d: int, delta: list, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    return {
        "title": f"panel {seed}",
        "a": rng.normal(size=(rows_a, d)),
        "b": rng.normal(size=(rows_b, d)),
        "delta": delta,
    }


def _options(rows_a: int = 3, rows_b: int = 3, d: int = 8, **options) -> dict:
    matches = options.pop("matches", [(0, 2), (1, 1), (2, 0)])
    delta = [0.5] * len(matches)
    return {
        "tokens_a": [f"a{i}" for i in range(rows_a)],
        "tokens_b": [f"b{i}" for i in range(rows_b)],
        "panels": [_panel(rows_a, rows_b, d, delta, seed) for seed in (0, 1)],
        "matches": matches,
        "vmax": 2.0,
        "bars": [
            {"label": "RoPE", "value": 0.4, "selected": True, "name": "rope"},
            {"label": "none", "value": 1e-7, "selected": False},
        ],
        "labels": {},
        "alt": "two sentences",
        "file": "order",
        **options,
    }


def test_round_trip():
    options = _options(rows_a=3, rows_b=4)
    meta, arrays = unpack(bundle(**options))
    for p, panel in enumerate(options["panels"]):
        np.testing.assert_array_equal(arrays[f"a{p}"], panel["a"])
        np.testing.assert_array_equal(arrays[f"b{p}"], panel["b"])
        assert meta["panels"][p] == {"title": panel["title"], "delta": [0.5, 0.5, 0.5]}
    assert (meta["d"], meta["vmax"], meta["floor"], meta["noise"]) == (8, 2.0, 1e-9, 1e-6)
    assert meta["matches"] == [[0, 2], [1, 1], [2, 0]]


def test_a_click_sends_the_name_or_else_the_index():
    meta, _ = unpack(bundle(**_options()))
    assert [bar["sends"] for bar in meta["bars"]] == ["rope", 1]


def test_small_outputs_keep_float64_and_large_ones_travel_as_float32():
    small = _options()
    small["panels"][0]["a"][0, 0] = 1 + 2**-40
    assert unpack(bundle(**small))[1]["a0"][0, 0] == 1 + 2**-40
    data = bundle(**_options(MAX_TOKENS, MAX_TOKENS, 256, matches=[]))
    meta, arrays = unpack(data)
    assert {array.dtype for array in arrays.values()} == {np.dtype("<f4")}
    assert len(data) < 4 * MAX_TOKENS * 256 * 4 + 20_000
    assert meta["matches"] == []


def test_unmatched_and_unmeasured_are_none():
    options = _options()
    options["panels"][1]["delta"] = np.array([0.5, np.nan, 0.1])
    options["bars"][0]["value"] = float("nan")
    meta, _ = unpack(bundle(**options))
    assert meta["panels"][1]["delta"] == [0.5, None, 0.1]
    assert meta["bars"][0]["value"] is None


@pytest.mark.parametrize(("rows_a", "rows_b"), [(0, 0), (0, 3), (2, 0)])
def test_empty_sentences_are_pictures_too(rows_a, rows_b):
    meta, arrays = unpack(bundle(**_options(rows_a, rows_b, matches=[])))
    assert arrays["a0"].shape == (rows_a, 8)
    assert arrays["b1"].shape == (rows_b, 8)
    assert meta["d"] == 8


def test_any_typed_text_travels():
    typed = ["</script>", "\0", "\ud800", "مرحبا"]
    meta, _ = unpack(bundle(**_options(4, 3, tokens_a=typed)))
    assert meta["tokens_a"] == typed


def _without_d(options: dict) -> None:
    options["panels"][1]["b"] = np.zeros((3, 9))


def _not_finite(options: dict) -> None:
    options["panels"][0]["a"][1, 1] = np.nan


def _short_delta(options: dict) -> None:
    options["panels"][0]["delta"] = [0.1]


def _negative_delta(options: dict) -> None:
    options["panels"][0]["delta"] = [0.1, -0.1, 0.1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_d, r"panels\[1\]\.b must have shape \(3, 8\), got \(3, 9\)"),
        (_not_finite, r"panels\[0\]\.a must be finite"),
        (_short_delta, r"panels\[0\]\.delta must have one number for each of the 3 matches, got 1"),
        (_negative_delta, r"panels\[0\]\.delta must be finite and not negative"),
        (lambda o: o.update(panels=o["panels"][:1]), "panels must be two"),
        (lambda o: o.update(matches=[(0, 3), (1, 1), (2, 0)]), r"match \(0, 3\) is outside 3 tokens of A and 3 of B"),
        (lambda o: o.update(matches=[(0, 0), (0, 1), (2, 2)]), "a token of A is matched twice"),
        (lambda o: o.update(matches=[(0, 1), (1, 1), (2, 2)]), "a token of B is matched twice"),
        (lambda o: o.update(vmax=0.0), "vmax must be finite and above 0, got 0.0"),
        (lambda o: o.update(floor=float("nan")), "floor must be finite and above 0, got nan"),
        (lambda o: o["bars"][0].update(value=-1.0), r"bars\[0\] must have a finite value of 0 or more, got -1.0"),
        (lambda o: o.update(tokens_a=["a"] * (MAX_TOKENS + 1)), f"sentence A has {MAX_TOKENS + 1} tokens"),
        (lambda o: o.update(tokens_b=["b"] * 4), r"panels\[0\]\.b must have shape \(4, 8\), got \(3, 8\)"),
    ],
)
def test_refusals(change, message):
    options = _options()
    change(options)
    with pytest.raises(ValueError, match=message):
        bundle(**options)


def test_every_text_the_script_asks_for_is_in_labels():
    source = "".join((_CANVAS / name).read_text("utf-8") for name in ("order.js", "parts/order_picture.js"))
    asked = set(re.findall(r"label\.(\w+)", source)) - {"textContent"}
    assert asked <= set(LABELS)
    families = {f"{stem}_{side}" for stem in ("empty", "tip_value") for side in "ab"}
    assert set(LABELS) - asked <= families | {"save"}


def test_translations_replace_the_english_texts():
    meta, _ = unpack(bundle(**_options(labels={"no_partner": "没有对应的词"})))
    assert meta["labels"] == {**LABELS, "no_partner": "没有对应的词"}


def test_standalone_page_holds_the_whole_component():
    page = standalone_html("order", bundle(**_options()), title="Order")
    assert "class OrderView" in page
    assert "export default" not in page


def test_top_level_names_are_declared_once():
    names = re.findall(r"^(?:const|let|class|function) (\w+)", script("order"), re.MULTILINE)
    assert len(names) == len(set(names))
