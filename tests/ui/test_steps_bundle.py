"""What the picture of one head receives: exact numbers where they are shown, true sums, and nothing false."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from posviz.attention import attend, untrained_projections
from posviz.encodings.alibi import Alibi
from posviz.encodings.rope import Rope
from posviz.encodings.sinusoidal import Sinusoidal
from posviz.encodings.t5 import T5
from posviz.text import tokenize
from posviz.types import Dims
from posviz.ui.canvas import steps
from posviz.ui.canvas.bundle import script, standalone_html
from posviz.ui.canvas.steps import LABELS, Head, Rotary, bundle, from_trace
from tests.ui.unpacked import unpack

_CANVAS = Path(steps.__file__).parent


def _head(encoding=None, text="我爱你", mask="none", d_model=16, head=1, **options) -> Head:
    trace = attend(tokenize(text), encoding or Rope(), Dims(d_model=d_model, n_heads=2), seed=3, mask=mask)
    w_o = untrained_projections(d_model, 3).w_o.double().numpy()
    return from_trace(trace, w_o, head, **options)


def _bundle(head: Head, **options) -> bytes:
    common = {"mode": "steps", "row": 2, "col": 0, "labels": {}, "alt": "steps", "file": "steps"}
    return bundle(head, **{**common, **options})


def test_inside_one_weight_all_its_numbers_travel():
    head = _head()
    meta, arrays = unpack(_bundle(head, mode="cell", scale_text="√8"))
    for name in ("q", "k", "q_rotated", "k_rotated", "scores", "weights"):
        np.testing.assert_array_equal(arrays[name], getattr(head, name).astype(np.float32))
    np.testing.assert_allclose(arrays["products"] * meta["scale"], head.scores, rtol=1e-5)
    np.testing.assert_allclose(arrays["part_content"] + arrays["part_rotation"], head.scores, rtol=1e-4, atol=1e-6)
    assert meta["parts"] == ["content", "rotation"]
    assert (meta["rotated"], meta["width"], meta["heads"], meta["head"]) == (True, 8, 2, 1)
    assert (meta["cell"], meta["scale_text"]) == ({"row": 2, "col": 0}, "√8")


def test_contributions_add_up_to_this_heads_share_of_the_output():
    head = _head()
    _, arrays = unpack(_bundle(head, mode="cell"))
    each = head.v @ head.w_o[8:16]  # this head's rows of W_O
    np.testing.assert_allclose(arrays["value_norms"], np.sqrt((each**2).sum(1)), rtol=1e-6)
    np.testing.assert_allclose(head.weights @ each, head.head_output @ head.w_o[8:16])


def test_all_steps_travel():
    head = _head(Alibi(), mask="causal")
    meta, arrays = unpack(_bundle(head, step=5))
    for name in ("x", "q_all", "v", "head_output", "concat", "w_o", "output", "scores", "bias"):
        np.testing.assert_array_equal(arrays[name], getattr(head, name).astype(np.float32))
    np.testing.assert_array_equal(np.isnan(arrays["masked"]), ~head.allowed)
    np.testing.assert_array_equal(np.isnan(arrays["weights"]), ~head.allowed)
    np.testing.assert_allclose(arrays["scaled"] + arrays["bias"], arrays["scores"], rtol=1e-5)
    assert (meta["step"], meta["rotated"], meta["rotary"]) == (5, False, None)
    assert "q_rotated" not in arrays  # the same as q


@pytest.mark.parametrize("encoding", [Rope(), Alibi(), Sinusoidal(), T5()], ids=lambda spec: spec.name)
@pytest.mark.parametrize("mode", ["cell", "steps"])
def test_every_kind_of_encoding_fits(encoding, mode):
    meta, arrays = unpack(_bundle(_head(encoding), mode=mode))
    parts = sum(arrays[f"part_{name}"] for name in meta["parts"]) if mode == "cell" else arrays["scores"]
    np.testing.assert_allclose(parts, arrays["scores"], rtol=1e-4, atol=1e-5)
    assert ("bias" in arrays) == (encoding.kind == "bias")


def test_angles_of_pairs_travel():
    spec = Rope(pairing="interleaved")
    angles = np.arange(3)[:, None] * spec.inv_freq(8).numpy()
    head = _head(spec, rotary=Rotary("interleaved", angles))
    meta, arrays = unpack(_bundle(head, mode="cell"))
    assert meta["rotary"] == {"pairing": "interleaved", "pairs": 4}
    np.testing.assert_array_equal(arrays["angles"], angles)
    assert "key_angles" not in arrays
    own = dataclasses.replace(head, rotary=Rotary("interleaved", angles, angles + 1))
    np.testing.assert_array_equal(unpack(_bundle(own, mode="cell"))[1]["key_angles"], angles + 1)


def test_long_sentences_travel_as_means_and_one_exact_row():
    head = _head(Alibi(), text="一二三四五六七八九十" * 30, mask="causal")
    meta, arrays = unpack(_bundle(head, row=150, col=7))
    np.testing.assert_array_equal(arrays["scores.row"], head.scores[150].astype(np.float32))
    assert "scores" not in arrays
    table = meta["tables"]["masked"]
    assert table["block"] == [2, 2]
    blocks = np.where(arrays["masked.blocks"] == 255, np.nan, (arrays["masked.blocks"] - 127.0) * table["step"])
    assert blocks.shape == (150, 150)
    np.testing.assert_allclose(blocks[5, 2], head.scores[10:12, 4:6].mean(), atol=table["step"] / 2)
    np.testing.assert_allclose(blocks[5, 5], head.scores[[10, 11, 11], [10, 10, 11]].mean(), atol=table["step"] / 2)
    assert np.isnan(blocks[5, 6])  # masked altogether
    assert table["limit"] == pytest.approx(np.abs(head.scores[head.allowed]).max())


def test_inside_one_weight_of_a_long_sentence_only_its_row_travels():
    data = _bundle(_head(Rope(), text="一二三四五六七八九十" * 51, d_model=64), mode="cell", row=300, col=7)
    _, arrays = unpack(data)
    assert not any(name.endswith(".blocks") for name in arrays)
    assert arrays["part_rotation.row"].shape == (510,)
    assert len(data) <= 700_000


def test_masked_scores_may_be_minus_infinity():
    head = _head(Alibi(), mask="causal")
    scores = np.where(head.allowed, head.scores, -np.inf)
    _, arrays = unpack(_bundle(dataclasses.replace(head, scores=scores)))
    np.testing.assert_array_equal(np.isnan(arrays["scores"]), ~head.allowed)


def test_cross_attention_has_keys_of_its_own():
    head = _head()
    parts = {"content": head.scores[:2]}
    fewer = {name: getattr(head, name)[:2] for name in ("x", "q_all", "q", "q_rotated", "bias", "scores", "allowed")}
    fewer |= {name: getattr(head, name)[:2] for name in ("weights", "head_output", "concat", "output", "tokens")}
    meta, arrays = unpack(
        _bundle(dataclasses.replace(head, key_tokens=list("abc"), parts=parts, **fewer), row=1, col=2)
    )
    assert (meta["tokens"], meta["keys"], meta["cross"]) == (["我", "爱"], ["a", "b", "c"], True)
    assert arrays["weights"].shape == (2, 3)


def test_a_bias_of_w_o_is_part_of_the_output():
    head = _head()
    b_o = np.arange(16.0)
    with_bias = dataclasses.replace(head, b_o=b_o, output=head.output + b_o)
    np.testing.assert_array_equal(unpack(_bundle(with_bias))[1]["b_o"], b_o)
    with pytest.raises(ValueError, match="concat @ w_o is not output, off by"):
        _bundle(dataclasses.replace(head, b_o=b_o))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "film"}, "mode must be one of cell, steps, got 'film'"),
        ({"side": "d"}, "side must be a or b, got 'd'"),
        ({"step": 10}, "step must be from 1 to 9, got 10"),
        ({"row": 3}, r"cell \(3, 0\) is outside 3 queries and 3 keys"),
        ({"col": -1}, r"cell \(2, -1\) is outside 3 queries and 3 keys"),
    ],
)
def test_refusals_of_the_view(changes, message):
    with pytest.raises(ValueError, match=message):
        _bundle(_head(), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": []}, "tokens must be 1 to 512, got 0 queries and 0 keys"),
        ({"head": 2}, "head must be from 0 to 1, got 2"),
        ({"q": np.zeros(3)}, r"q and x must have two axes, got shapes \(3,\) and \(3, 16\)"),
        ({"k": np.zeros((3, 7))}, r"k must have shape \(3, 8\), got \(3, 7\)"),
        ({"v": np.full((3, 8), np.nan)}, "v must be finite, got 24 NaN"),
        ({"w_o": np.zeros((8, 16))}, r"w_o must have shape \(16, 16\), got \(8, 16\)"),
        ({"b_o": np.zeros(3)}, r"b_o must have shape \(16,\), got \(3,\)"),
        ({"allowed": np.ones((3, 3))}, "allowed must be booleans, got float64"),
        ({"scale": np.inf}, "scale must be finite, got inf"),
        ({"scale": 1.0}, r"scores are not q_rotated \. k_rotated \* scale \+ bias, off by"),
        ({"scores": np.full((3, 3), np.nan)}, r"scores are not q_rotated .* off by nan"),
        ({"parts": {"content": np.zeros((3, 3))}}, "the parts do not add up to the scores, off by"),
        ({"parts": {"content": np.zeros((3, 2))}}, r"parts\['content'\] must have shape \(3, 3\)"),
        ({"allowed": np.zeros((3, 3), bool)}, "allowed masks cells whose weight is not 0"),
        ({"weights": np.full((3, 3), 1.0)}, "weights @ v is not head_output, off by"),
        ({"output": np.zeros((3, 16))}, "concat @ w_o is not output, off by"),
        ({"rotary": Rotary("thirds", np.zeros((3, 4)))}, "pairing must be one of half, interleaved, got 'thirds'"),
        ({"rotary": Rotary("half", np.zeros((3, 5)))}, "angles must be of 1 to 4 pairs for a head 8 wide, got 5"),
        ({"rotary": Rotary("half", np.zeros((2, 4)))}, r"angles must have shape \(3, 4\), got \(2, 4\)"),
    ],
)
def test_refusals_of_a_head(changes, message):
    with pytest.raises(ValueError, match=message):
        _bundle(dataclasses.replace(_head(), **changes))


def test_a_part_needs_a_text():
    head = _head()
    with pytest.raises(ValueError, match=r"parts\['magic'\] has no text: labels needs 'part_magic'"):
        _bundle(dataclasses.replace(head, parts={"magic": head.scores}))


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="head must be from 0 to 1, got 2"):
        _head(head=2)


def test_every_text_the_script_asks_for_is_in_labels():
    files = ("steps.js", "parts/steps_data.js", "parts/cell_picture.js", "parts/steps_picture.js")
    source = "".join((_CANVAS / name).read_text("utf-8") for name in files)
    asked = set(re.findall(r"\blabel\.(\w+)", source)) | set(re.findall(r"'(say_\w+)'", source))
    assert asked <= set(LABELS)
    families = re.compile(r"(part|row|column|strip)_\w+|(step|say)_[1-9]|save")
    assert [key for key in LABELS if key not in asked and not families.fullmatch(key)] == []


def test_standalone_page_holds_the_whole_component():
    page = standalone_html("steps", _bundle(_head()), title="Steps")
    assert "class StepsView" in page
    assert "export default" not in page


def test_top_level_names_are_declared_once():
    names = re.findall(r"^(?:const|let|class|function) (\w+)", script("steps"), re.MULTILINE)
    assert len(names) == len(set(names))
