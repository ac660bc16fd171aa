"""What the Attention picture receives: weights, masks and parts survive the trip; nonsense is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from posviz.ui.canvas import heads
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.heads import LABELS, bundle
from tests.ui.unpacked import unpack

_CANVAS = Path(heads.__file__).parent


def _weights(heads: int, length: int, causal: bool = False, seed: int = 0) -> np.ndarray:
    """Rows that sum to 1, shape (heads, length, length)."""
    scores = np.random.default_rng(seed).normal(size=(heads, length, length))
    if causal:
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    shares = np.exp(scores)
    return shares / shares.sum(-1, keepdims=True)


def _single(heads: int, length: int, **options) -> dict:
    tokens = [f"t{i}" for i in range(length)]
    return {
        "tokens_a": tokens,
        "weights_a": _weights(heads, length),
        "labels": {},
        "alt": "heads",
        "file": "heads",
        **options,
    }


def _pair(**options) -> dict:
    """我爱你 and 你爱我 with two heads, parts and a difference."""
    a, b = _weights(2, 3, seed=1), _weights(2, 3, seed=2)
    order = [2, 1, 0]
    parts = {name: np.random.default_rng(k).normal(size=(2, 3, 3)) for k, name in enumerate(("content", "bias"))}
    return {
        **_single(2, 3),
        "tokens_a": list("我爱你"),
        "weights_a": a,
        "tokens_b": list("你爱我"),
        "weights_b": b,
        "diff_tokens": list("我爱你"),
        "difference": a - b[:, order][:, :, order],
        "pairs": [(0, 2), (1, 1), (2, 0)],
        "parts_a": {**parts, "scores": parts["content"] + parts["bias"]},
        "parts_b": parts,
        **options,
    }


def _cross(**options) -> dict:
    """Two queries over the keys 我爱你, one query over 你爱; the difference has 爱 and 你 as keys."""
    rng = np.random.default_rng(3)
    a, b = rng.dirichlet(np.ones(3), size=(2, 2)), rng.dirichlet(np.ones(2), size=(2, 1))
    return {
        "tokens_a": ["x", "y"],
        "keys_a": list("我爱你"),
        "weights_a": a,
        "tokens_b": ["y"],
        "keys_b": list("你爱"),
        "weights_b": b,
        "diff_tokens": ["y"],
        "diff_keys": list("爱你"),
        "difference": a[:, 1:, 1:] - b[:, :, ::-1],
        "pairs": [(1, 0)],
        "key_pairs": [(1, 1), (2, 0)],
        "parts_a": {"content": np.log(a)},
        "labels": {},
        "alt": "heads",
        "file": "heads",
        **options,
    }


def test_cross_attention_has_keys_of_its_own():
    options = _cross(selected={"sentence": "a", "head": 1, "row": 1, "col": 2})
    meta, arrays = unpack(bundle(**options))
    assert meta["cross"] is True
    assert meta["keys"] == {"a": list("我爱你"), "b": list("你爱"), "d": list("爱你")}
    assert (meta["pairs"], meta["key_pairs"]) == ([[1, 0]], [[1, 1], [2, 0]])
    assert meta["selected"]["col"] == 2
    for side, name in (("a", "weights_a"), ("b", "weights_b"), ("d", "difference")):
        np.testing.assert_array_equal(arrays[f"{side}.weights"], options[name].astype(np.float32))
    square = unpack(bundle(**_pair()))[0]
    assert (square["cross"], square["keys"], square["key_pairs"]) == (False, square["tokens"], square["pairs"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_a": np.zeros((2, 2, 2))}, r"weights_a must have shape \(heads, 2, 3\), got \(2, 2, 2\)"),
        ({"keys_b": None}, "weights_b and weights_a must both have keys of their own, or both none"),
        ({"diff_keys": None}, "difference and weights_a must both have keys of their own, or both none"),
        ({"key_pairs": [(1, 1)]}, "key_pairs must be one for each of the 2 tokens of the difference, got 1"),
        ({"key_pairs": [(1, 1), (3, 0)]}, r"key_pairs hold \(3, 0\), outside 3 tokens of A and 2 of B"),
        ({"selected": {"sentence": "a", "head": 0, "row": 2, "col": 0}}, "selected .* is outside the heads"),
        ({"bias_by_distance": (np.arange(3), np.zeros((2, 3)))}, "bias_by_distance needs queries and keys of one"),
    ],
)
def test_cross_attention_that_does_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        bundle(**_cross(**changes))


def test_pairs_of_keys_need_keys():
    with pytest.raises(ValueError, match="key_pairs need keys_a"):
        bundle(**_pair(key_pairs=[(0, 2), (1, 1), (2, 0)]))


def test_round_trip_of_two_sentences():
    options = _pair(selected={"sentence": "d", "head": 1, "row": 2, "col": 0}, scale="√16", columns=2)
    meta, arrays = unpack(bundle(**options))
    for side, name in (("a", "weights_a"), ("b", "weights_b"), ("d", "difference")):
        np.testing.assert_array_equal(arrays[f"{side}.weights"], options[name].astype(np.float32))
    np.testing.assert_array_equal(arrays["a.bias"], options["parts_a"]["bias"].astype(np.float32))
    assert [part["name"] for part in meta["parts"]["a"]] == ["content", "bias", "scores"]
    assert meta["tokens"] == {"a": list("我爱你"), "b": list("你爱我"), "d": list("我爱你")}
    assert meta["pairs"] == [[0, 2], [1, 1], [2, 0]]
    assert meta["selected"] == {"sentence": "d", "head": 1, "row": 2, "col": 0}
    assert (meta["heads"], meta["rounded"], meta["scale"], meta["columns"]) == (2, False, "√16", 2)
    assert meta["head_labels"] == ["Head 0", "Head 1"]


def test_one_sentence_alone():
    meta, arrays = unpack(bundle(**_single(4, 5)))
    assert list(meta["tokens"]) == ["a"]
    assert list(arrays) == ["a.weights"]


def test_masks_travel_only_where_they_mask():
    mask = np.tril(np.ones((4, 4), bool))
    weights = _weights(2, 4, causal=True)
    _, arrays = unpack(bundle(**_single(2, 4, weights_a=weights, allowed_a=mask)))
    np.testing.assert_array_equal(arrays["a.allowed"], mask)
    _, arrays = unpack(bundle(**_single(2, 4, allowed_a=np.ones((4, 4), bool))))
    assert "a.allowed" not in arrays


def test_masked_scores_may_be_minus_infinity():
    mask = np.tril(np.ones((3, 3), bool))
    content = np.ones((2, 3, 3))
    parts = {"content": content, "scores": np.where(mask, content, -np.inf)}
    options = _single(2, 3, weights_a=_weights(2, 3, causal=True), allowed_a=mask, parts_a=parts)
    _, arrays = unpack(bundle(**options))
    np.testing.assert_array_equal(arrays["a.scores"], np.broadcast_to(mask, (2, 3, 3)).astype(np.float32))


def test_twelve_layers_of_twelve_heads_over_128_tokens_are_below_3_mb():
    weights = _weights(144, 128)
    data = bundle(**_single(144, 128, weights_a=weights, allowed_a=None, columns=12))
    assert len(data) <= 3_000_000
    meta, arrays = unpack(data)
    assert meta["rounded"] is True
    assert arrays["a.weights"].dtype == np.uint8
    assert np.abs(arrays["a.weights"] / 255 - weights).max() <= 0.5 / 255 + 1e-9


def test_twelve_layers_of_twelve_heads_over_24_tokens_stay_exact():
    weights = _weights(144, 24)
    data = bundle(**_single(144, 24, weights_a=weights))
    assert len(data) <= 400_000
    np.testing.assert_array_equal(unpack(data)[1]["a.weights"], weights.astype(np.float32))


def test_rounded_differences_keep_zero_and_the_ends_exact():
    zero = np.zeros((1, 512, 512))
    zero[0, 0, :3] = [1, -1, 0.25]
    weights = _weights(1, 512)
    tokens = [""] * 512
    options = _single(
        1, 512, weights_a=weights, tokens_b=tokens, weights_b=weights, diff_tokens=tokens, difference=zero
    )
    _, arrays = unpack(bundle(**options))
    back = (arrays["d.weights"][0].astype(float) - 127) / 127
    assert (back[0, 0], back[0, 1], back[1, 1]) == (1, -1, 0)
    assert abs(back[0, 2] - 0.25) <= 0.5 / 127


def test_large_parts_travel_as_steps_of_16_bits():
    length = 320
    part = np.random.default_rng(0).normal(size=(2, length, length))
    data = bundle(**_single(2, length, parts_a={"content": part}))
    meta, arrays = unpack(data)
    step = meta["parts"]["a"][0]["step"]
    assert arrays["a.content"].dtype == np.int16
    assert np.abs(arrays["a.content"] * step - part).max() <= step / 2 * (1 + 1e-9)


def test_bias_by_distance_is_sorted():
    distances, bias = np.array([1, -1, 0]), np.array([[1.0, 2.0, 3.0]] * 2)
    _, arrays = unpack(bundle(**_single(2, 3, bias_by_distance=(distances, bias))))
    assert arrays["bias_x"].tolist() == [-1, 0, 1]
    assert arrays["bias_y"].tolist() == [[2, 3, 1]] * 2


def test_empty_sentences_and_no_matches_are_pictures_too():
    none = np.zeros((2, 0, 0))
    meta, _ = unpack(bundle(**_pair(diff_tokens=[], difference=none, pairs=[])))
    assert meta["tokens"]["d"] == []
    empty = _pair(tokens_b=[], weights_b=none, parts_b=None, diff_tokens=[], difference=none, pairs=[])
    assert unpack(bundle(**empty))[0]["tokens"]["b"] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_a": np.zeros((2, 3, 4))}, r"weights_a must have shape \(heads, 3, 3\), got \(2, 3, 4\)"),
        ({"weights_b": np.zeros((3, 3, 3))}, r"weights_b must have shape \(2, 3, 3\), got \(3, 3, 3\)"),
        ({"difference": np.zeros((2, 2, 2))}, r"difference must have shape \(2, 3, 3\), got \(2, 2, 2\)"),
        ({"weights_b": None, "parts_b": None}, "weights_b is missing, but its tokens or mask were given"),
        ({"tokens_b": None}, "weights_b needs its tokens"),
        ({"weights_a": np.full((2, 3, 3), 1.5)}, "weights_a must lie between 0 and 1, got 1.5 to 1.5"),
        ({"weights_a": np.full((2, 3, 3), np.nan)}, "weights_a must be finite, got 18 NaN"),
        ({"difference": np.full((2, 3, 3), -1.5)}, "difference must lie between -1 and 1"),
        ({"allowed_a": np.ones((3, 3))}, r"allowed_a must be booleans of shape \(3, 3\), got float64"),
        ({"allowed_a": np.zeros((3, 3), bool)}, "allowed_a masks cells whose weight is not 0"),
        ({"parts_a": {"content": np.zeros((2, 3, 2))}}, r"parts_a\['content'\] must have shape \(2, 3, 3\)"),
        ({"parts_a": {"magic": np.zeros((2, 3, 3))}}, "labels needs 'part_magic'"),
        ({"parts_a": {"content": np.full((2, 3, 3), np.inf)}}, r"parts_a\['content'\] must be finite"),
        ({"parts_a": {"content": np.zeros((2, 3, 3)), "scores": np.ones((2, 3, 3))}}, "do not add up to its scores"),
        ({"pairs": [(0, 0)]}, "pairs must be one for each of the 3 tokens of the difference, got 1"),
        ({"pairs": [(0, 0), (1, 1), (2, 3)]}, r"pairs hold \(2, 3\), outside 3 tokens of A and 3 of B"),
        ({"head_labels": ["only one"]}, "head_labels must be 2, got 1"),
        ({"columns": 0}, "columns must be 1 or more, got 0"),
        ({"bias_by_distance": (np.arange(3), np.zeros((2, 4)))}, r"bias_by_distance must be distances \(D,\)"),
        (
            {"selected": {"sentence": "a", "head": 2, "row": 0, "col": 0}},
            r"selected .* is outside the heads, queries and keys {'a': \(2, 3, 3\)",
        ),
        (
            {"selected": {"sentence": "c", "head": 0, "row": 0, "col": 0}},
            "selected .* is outside the heads, queries and keys",
        ),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(ValueError, match=message):
        bundle(**_pair(**changes))


def test_more_tokens_than_can_be_drawn_are_refused():
    with pytest.raises(ValueError, match="weights_a has 513 tokens; at most 512 can be drawn"):
        bundle(**_single(1, 513, weights_a=np.zeros((1, 513, 513))))


def test_every_text_the_script_asks_for_is_in_labels():
    files = ("heads.js", "parts/heads_data.js", "parts/heads_picture.js", "parts/heads_panel.js")
    source = "".join((_CANVAS / name).read_text("utf-8") for name in files)
    asked = set(re.findall(r"\blabel\.(\w+)", source))
    assert asked <= set(LABELS)
    families = re.compile(r"(part|row|weight|legend|empty)_\w+|head|caption_d|no_matches|save|(bias_)?profile")
    assert [key for key in LABELS if key not in asked and not families.fullmatch(key)] == []


def test_standalone_page_holds_the_whole_component():
    page = standalone_html("heads", bundle(**_pair()), title="Attention")
    assert "class HeadsView" in page
    assert "export default" not in page


def test_top_level_names_are_declared_once():
    names = re.findall(r"^(?:const|let|class|function) (\w+)", script("heads"), re.MULTILINE)
    assert len(names) == len(set(names))
