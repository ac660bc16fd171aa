"""What the link view receives: weights, masks, matches and the look survive the trip; nonsense is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from posviz.ui.canvas import links
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.links import LABELS, bundle
from tests.ui.unpacked import unpack

_CANVAS = Path(links.__file__).parent


def _weights(queries: int, keys: int, causal: bool = False, seed: int = 0) -> np.ndarray:
    """Rows that sum to 1."""
    scores = np.random.default_rng(seed).normal(size=(queries, keys))
    if causal:
        scores = np.where(np.tril(np.ones((queries, keys), bool)), scores, -np.inf)
    shares = np.exp(scores)
    return shares / shares.sum(-1, keepdims=True)


def _pair(**options) -> dict:
    """我爱你 and 你爱我."""
    return {
        "tokens_a": list("我爱你"),
        "weights_a": _weights(3, 3, seed=1),
        "tokens_b": list("你爱我"),
        "weights_b": _weights(3, 3, seed=2),
        "pairs": [(0, 2), (1, 1), (2, 0)],
        "labels": {},
        "alt": "links",
        "file": "links",
        **options,
    }


def _alone(length: int, **options) -> dict:
    tokens = [f"t{i}" for i in range(length)]
    common = {"tokens_a": tokens, "weights_a": _weights(length, length), "labels": {}, "alt": "links", "file": "links"}
    return {**common, **options}


def _cross(**options) -> dict:
    """Two queries on three keys, with their own matches."""
    keys = {"key_tokens_a": list("abc"), "key_tokens_b": list("cba")}
    weights = {"weights_a": _weights(2, 3), "weights_b": _weights(2, 3, seed=3)}
    tokens = {"tokens_a": ["x", "y"], "tokens_b": ["y", "x"], "pairs": [(0, 1), (1, 0)]}
    return _pair(**{**keys, **weights, **tokens, "key_pairs": [(0, 2), (1, 1), (2, 0)], **options})


def test_round_trip_of_two_sentences():
    options = _pair(selected={"a": [2, 1, 2], "b_keys": [0]}, threshold=0.1, top_k=3, title="head 1")
    meta, arrays = unpack(bundle(**options))
    for side in "ab":
        np.testing.assert_array_equal(arrays[f"{side}.weights"], options[f"weights_{side}"].astype(np.float32))
    words = {"queries": list("我爱你"), "keys": list("我爱你"), "rounded": False, "cross": False}
    assert meta["sides"]["a"] == words
    assert meta["pairs"] == meta["key_pairs"] == [[0, 2], [1, 1], [2, 0]]
    assert meta["look"] == {"threshold": 0.1, "top_k": 3, "a": [1, 2], "b": [], "a_keys": [], "b_keys": [0]}
    assert meta["title"] == "head 1"


def test_one_sentence_alone():
    meta, arrays = unpack(bundle(**_alone(5)))
    assert list(meta["sides"]) == ["a"]
    assert list(arrays) == ["a.weights"]
    assert meta["pairs"] is None


def test_an_empty_sentence_is_a_picture_too():
    meta, arrays = unpack(bundle(**_pair(tokens_b=[], weights_b=np.zeros((0, 0)), pairs=[])))
    assert meta["sides"]["b"]["queries"] == []
    assert arrays["b.weights"].shape == (0, 0)


def test_cross_attention_has_keys_of_its_own():
    meta, arrays = unpack(bundle(**_cross(selected={"a_keys": [2]})))
    assert meta["sides"]["a"] == {"queries": ["x", "y"], "keys": list("abc"), "rounded": False, "cross": True}
    assert arrays["b.weights"].shape == (2, 3)
    assert meta["pairs"] == [[0, 1], [1, 0]]
    assert meta["key_pairs"] == [[0, 2], [1, 1], [2, 0]]
    assert unpack(bundle(**_cross(key_pairs=None)))[0]["key_pairs"] is None


def test_masks_travel_only_where_they_mask():
    mask = np.tril(np.ones((4, 4), bool))
    _, arrays = unpack(bundle(**_alone(4, weights_a=_weights(4, 4, causal=True), allowed_a=mask)))
    np.testing.assert_array_equal(np.unpackbits(arrays["a.allowed"], count=16).reshape(4, 4), mask)
    assert "a.allowed" not in unpack(bundle(**_alone(4, allowed_a=np.ones((4, 4), bool))))[1]


def test_many_weights_travel_as_bytes():
    weights = _weights(512, 512)
    data = bundle(**_alone(512, weights_a=weights))
    assert len(data) <= 300_000
    meta, arrays = unpack(data)
    assert meta["sides"]["a"]["rounded"] is True
    assert arrays["a.weights"].dtype == np.uint8
    assert np.abs(arrays["a.weights"] / 255 - weights).max() <= 0.5 / 255 + 1e-9


def test_rounding_errors_of_a_softmax_are_cut_off():
    weights = np.array([[1 + 4e-6, -4e-6], [0, 1]])
    _, arrays = unpack(bundle(**_alone(2, weights_a=weights)))
    np.testing.assert_array_equal(arrays["a.weights"], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_a": np.zeros((3, 4))}, r"weights_a must have shape \(3, 3\), got \(3, 4\)"),
        ({"key_tokens_b": ["x"]}, r"weights_b must have shape \(3, 1\), got \(3, 3\)"),
        ({"weights_a": np.full((3, 3), 1.5)}, "weights_a must lie between 0 and 1, got 1.5 to 1.5"),
        ({"weights_a": np.full((3, 3), np.nan)}, "weights_a must be finite, got 9 NaN"),
        ({"weights_b": None}, "weights_b is missing, but its tokens or mask were given"),
        ({"weights_b": None, "tokens_b": None}, "pairs were given without weights_b"),
        ({"tokens_b": None}, "weights_b needs its tokens"),
        ({"allowed_a": np.ones((3, 3))}, r"allowed_a must be booleans of shape \(3, 3\), got float64"),
        ({"allowed_b": np.zeros((3, 3), bool)}, "allowed_b masks cells whose weight is not 0"),
        ({"pairs": [(0, 3)]}, r"pairs hold \(0, 3\), outside 3 tokens of A and 3 of B"),
        ({"pairs": [(0, 1), (2, 1)]}, "pairs match a token twice"),
        ({"key_pairs": [(0, 0)]}, "key_pairs need key_tokens"),
        ({"selected": {"a": [3]}}, r"selected\['a'\] must be from 0 to 2, got \[3\]"),
        ({"selected": {"c": [0]}}, "selected may hold a, b, a_keys and b_keys, got c"),
        ({"threshold": 0.51}, "threshold must be from 0 to 0.5, got 0.51"),
        ({"threshold": float("nan")}, "threshold must be from 0 to 0.5, got nan"),
        ({"top_k": 2}, "top_k must be one of 0, 1, 3, 5, got 2"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(ValueError, match=message):
        bundle(**_pair(**changes))


def test_more_tokens_than_can_be_drawn_are_refused():
    with pytest.raises(ValueError, match="tokens_a has 513 tokens; at most 512 can be drawn"):
        bundle(**_alone(513, weights_a=np.zeros((513, 513))))


def test_every_text_the_script_asks_for_is_in_labels():
    files = ("links.js", "parts/links_data.js", "parts/links_picture.js")
    source = "".join((_CANVAS / name).read_text("utf-8") for name in files)
    asked = set(re.findall(r"\blabel\.(\w+)", source))
    assert asked <= set(LABELS)
    families = re.compile(r"(row|legend)_[ab]|save")
    assert [key for key in LABELS if key not in asked and not families.fullmatch(key)] == []


def test_standalone_page_holds_the_whole_component():
    page = standalone_html("links", bundle(**_pair()), title="Links")
    assert "class LinksView" in page
    assert "export default" not in page


def test_top_level_names_are_declared_once():
    names = re.findall(r"^(?:const|let|class|function) (\w+)", script("links"), re.MULTILINE)
    assert len(names) == len(set(names))
