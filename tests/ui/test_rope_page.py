"""The RoPE workbench through AppTest: models from links, pasted files, what is said about them."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from posviz import encodings
from posviz.encodings.known_models import known_models
from posviz.types import Refusal
from posviz.ui import models, params
from posviz.ui.scenes import rope_plots
from tests.test_pages import html, open_page, refusals, shown

LLAMA = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 4096}


def page(**params: str) -> AppTest:
    return open_page("rope", lang="en", **params)


def test_the_first_view_shows_what_yarn_does() -> None:
    app = page()
    assert not app.exception
    text = shown(app)
    assert "24 / 64" in text and "0 / 64" in text and "should be 0" in text
    assert "pv-fails" not in html(app)
    assert "factor 4 × original length 32768 = 131072, but max_position_embeddings says 32768." in text


@pytest.mark.parametrize("view", params.ROPE_VIEWS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_picture_is_drawn(view: str, lang: str) -> None:
    app = open_page("rope", lang=lang, rview=view)
    assert not app.exception and refusals(app) == []


@pytest.mark.parametrize("key", list(known_models()))
def test_every_known_model_has_every_picture(key: str) -> None:
    found = models.model(key)
    for rope in found.ropes.values():
        trained = rope.trained_length
        for view in params.ROPE_VIEWS:
            for wanted in (2, trained, 4 * trained):
                assert rope_plots.picture(view, (("A", found.title, rope, trained),), wanted, "en")


def test_one_model_alone() -> None:
    app = page(ra="gpt-j-6b", rb="none", rview="needle")
    assert not app.exception and refusals(app) == []
    assert known_models()["gpt-j-6b"].source in shown(app)
    assert "attention factor, on cos and on sin" in shown(app)


def test_a_link_can_carry_settings() -> None:
    raw = json.dumps({**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0, "beta_slow": 1}})
    app = page(ra=raw, rb="none")
    assert refusals(app) == []
    text = shown(app)
    assert "linear (position interpolation) × 4" in text
    assert "linear does not read beta_slow: without effect, unless the model's own code uses it." in text
    assert "pasted settings" in text


BAD = [
    ("ra", "llama-9", "a model must be one of " + ", ".join(known_models()) + ", or a JSON object, got llama-9"),
    ("ra", "", "a model must be one of " + ", ".join(known_models()) + ", or a JSON object, got “”"),
    ("rb", "{", "the text is not JSON: line 1, column 2 cannot be read"),
    ("rb", '{"hidden_size": "x"}', "`num_attention_heads` is missing; RoPE cannot be worked out without it"),
    (
        "ra",
        '{"a":"' + "x" * 13_000 + '"}',
        "what the file says about RoPE has 13,008 characters; up to 12,000 are taken",
    ),
    ("rlen", "1", "`rlen` must be a whole number from 2 to 16777216, got 1"),
    ("rlen", "1e5", "`rlen` must be a whole number from 2 to 16777216, got '1e5'"),
    ("rlayer", "<b>", "`rlayer` must be a layer type such as full_attention, got <b>"),
    ("rview", "pie", "`rview` must be one of ratio, waves, angles, kernel, needle, got pie"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD, ids=range(len(BAD)))
def test_a_bad_link_is_one_sentence(name: str, value: str, sentence: str) -> None:
    app = page(**{name: value})
    assert not app.exception
    assert refusals(app) == [sentence]
    assert "What happens to RoPE" in shown(app)


def test_a_bad_link_is_answered_in_chinese() -> None:
    assert refusals(open_page("rope", lang="zh", rlayer="<b>")) == [
        "`rlayer` 应是层的类型，例如 full_attention，现在是 <b>"
    ]
    assert refusals(open_page("rope", lang="zh", rb="{")) == ["文本不是 JSON：第 1 行第 2 列读不懂"]


def test_pasting_takes_what_concerns_rope() -> None:
    app = page()
    whole = {**LLAMA, "rope_theta": 5e5, "vocab_size": 99, "architectures": ["X"]}
    app.text_area(key="w_ra_text").set_value(json.dumps(whole)).run()
    assert not app.exception and refusals(app) == []
    kept = json.loads(app.session_state["ra"])
    assert kept == {**LLAMA, "rope_theta": 5e5}
    assert "500,000" in shown(app)
    # what cannot be read is said, and what was there stays
    app.text_area(key="w_ra_text").set_value('{"rope_theta": NaN}').run()
    assert refusals(app) == ["the text holds NaN, which is not a number in JSON"]
    assert json.loads(app.session_state["ra"]) == kept
    app.selectbox(key="w_ra").set_value("yi-34b").run()
    assert refusals(app) == []


def test_uploads_are_read_the_same_way() -> None:
    raw = models.from_file(json.dumps({**LLAMA, "extra": 1}).encode())
    assert json.loads(raw) == LLAMA
    assert models.model(raw).ropes[""] == encodings.rope_from_config(LLAMA)
    lists = {"type": "longrope", "short_factor": [1.23456789012345] * 512, "long_factor": [1.23456789012345] * 512}
    with pytest.raises(Refusal, match="up to 12,000"):
        models.from_file(json.dumps({**LLAMA, "head_dim": 1024, "rope_scaling": lists}))


def test_layers_can_be_chosen() -> None:
    assert "linear (position interpolation) × 8" in shown(page(ra="gemma-3-12b", rb="none"))
    sliding = shown(page(ra="gemma-3-12b", rb="none", rlayer="sliding_attention"))
    assert "× 8" not in sliding and "10,000" in sliding
    # a model without such layers shows what it has
    assert refusals(page(ra="yi-34b", rb="none", rlayer="sliding_attention")) == []


def test_pictures_hold_the_cores_numbers() -> None:
    rope = encodings.rope_from_config(known_models()["llama-3.1-8b"].config)
    part = rope_plots.Part("A", "x", rope, 8192)
    made = rope_plots._ratio([part], 131_072)[0]
    own = next(one for one in made.series if one.colour == "a")
    np.testing.assert_allclose(own.y, rope.inv_freq() / rope.unscaled_inv_freq())
    assert [one.label for one in made.series[:-1]] == [
        "linear (position interpolation)",
        "NTK-aware",
        "dynamic NTK",
        "YaRN",
    ]
    assert [mark.at for mark in made.marks] == list(rope.scaling.band(128, 5e5))
    waves = rope_plots._waves([part], 131_072)[0]
    assert [one.style for one in waves.series] == ["rings", "dots"]
    assert [mark.at for mark in waves.marks] == [8192, 131_072]
    np.testing.assert_allclose(waves.series[1].y, 2 * np.pi / rope.inv_freq())


def test_a_refused_paste_is_forgotten_with_its_box() -> None:
    app = open_page("rope", lang="en")
    app.text_area(key="w_ra_text").set_value("nonsense").run()
    said = refusals(app)
    assert len(said) == 1 and said[0].startswith("the text is not JSON")
    app.run()
    assert refusals(app) == said
    app.switch_page("pages/order.py").run()
    app.switch_page("pages/rope.py").run()
    assert not app.exception and refusals(app) == []
