"""The Studio page: every view of a trained model in both languages, its numbers, its refusals."""

import re

import numpy as np
import pytest

from posviz import survey
from posviz.models.twins import store
from posviz.ui.canvas import grid
from tests.test_pages import html, open_page, refusals, shown
from tests.ui.unpacked import unpack

VIEWS = ("grid", "head", "lines", "weight", "steps", "all")


def values(app) -> np.ndarray:
    """What the page's code computes."""
    app.session_state["studio_details"] = "code"
    app.run()
    assert not app.exception
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    return namespace["values"]


def layers(name: str, sentence: str):
    twin = store.load(name)
    return twin.trace(twin.tokenize(sentence)).layers


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_both_languages(view: str, lang: str) -> None:
    app = open_page("studio", lang=lang, sview=view)
    assert not app.exception
    assert refusals(app) == []
    assert bool(re.search(r"[\u4e00-\u9fff]{4}", shown(app))) == (lang == "zh")
    assert html(app).count('class="pv-number') == 4  # three numbers and what holds them
    assert "pv-fails" not in html(app)


@pytest.mark.parametrize("model", ["untrained", "twin:none", "twin:learned"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_kind_of_model_has_every_view(model: str, view: str) -> None:
    app = open_page("studio", smodel=model, sview=view, a="狗咬人人", b="人咬狗")
    assert not app.exception and refusals(app) == []


def test_the_twin_of_the_pages_encoding_is_the_default() -> None:
    assert open_page("studio", encoding="learned").session_state["w_smodel"] == "twin:learned"
    assert open_page("studio", encoding="kerple").session_state["w_smodel"] == "twin:rope"
    text = shown(open_page("studio", lang="en", encoding="rope"))
    assert "bundled twin" in text and "seed 0" in text


def test_the_code_gives_the_numbers_of_the_picture() -> None:
    a = layers("rope", "我爱你")
    given = {"encoding": "rope", "slayer": "3", "shead": "2"}
    expected = np.stack([survey.head_scores(layer.weights, layer.allowed)["previous"] for layer in a])
    np.testing.assert_allclose(values(open_page("studio", **given)), expected, atol=1e-6)
    np.testing.assert_allclose(values(open_page("studio", sview="head", **given)), a[2].weights[2])
    np.testing.assert_allclose(values(open_page("studio", sview="lines", **given)), a[2].weights[2])
    row = values(open_page("studio", sview="weight", scell="a.2.1", **given))
    np.testing.assert_allclose(row, a[2].weights[2, 2], atol=1e-5)
    together = values(open_page("studio", sview="all", sgather="max", sheads="0,3", **given))
    np.testing.assert_allclose(together, np.stack([x.weights[[0, 3]] for x in a]).max((0, 1)), atol=1e-6)


def test_special_tokens_hidden() -> None:
    a = layers("rope", "我爱你")[2].weights[2, 1:, 1:]
    given = {"encoding": "rope", "slayer": "3", "shead": "2", "sview": "head"}
    np.testing.assert_allclose(values(open_page("studio", sspecial="hidden", **given)), a)
    app = open_page("studio", lang="en", sspecial="renormalised", **given)
    np.testing.assert_allclose(values(app), a / a.sum(-1, keepdims=True), rtol=1e-5)
    assert "not what the model computes with" in shown(app)
    assert "▸" not in shown(app)


def test_the_untrained_layer_is_the_attention_pages() -> None:
    app = open_page("studio", smodel="untrained", sview="head", encoding="alibi", seed="3", shead="1", slayer="1")
    from posviz import Dims, attention, encodings, text

    trace = attention.attend(text.tokenize("我爱你"), encodings.make("alibi"), Dims(d_model=64, n_heads=4), seed=3)
    np.testing.assert_allclose(values(app), trace.weights[1], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": ""}, "Sentence A is empty: type a word, or choose one of the examples."),
        ({"b": "我" * 160}, "the twins take up to 159 characters, got 160"),
        ({"sview": "film"}, "`sview` must be one of grid, head, lines, weight, steps, all, got film"),
        ({"slayer": "0"}, "`slayer` must be a whole number from 1 to 200, got 0"),
        ({"scell": "a.1"}, "`scell` must be a sentence, query and key such as a.1.2, got a.1"),
        ({"scell": "d.1.2"}, "`scell` must be a sentence, query and key such as a.1.2, got d.1.2"),
        ({"slines": "a1.c2"}, "`slines` must be queries and keys such as a3.bk0, got a1.c2"),
        ({"sfrom": "0.9"}, "`sfrom` must be a finite number from 0 and up to 0.5, got 0.9"),
        ({"stop": "2"}, "`stop` must be one of 0, 1, 3, 5, got 2"),
        ({"sview": "all", "slayers": "1,x"}, "`slayers` must be a whole number from 0 to 999, got 'x'"),
        ({"sview": "all", "sheads": "77"}, "choose at least one layer and one head"),
        (
            {"smodel": "twin:cope"},
            "a twin must be one of none, sinusoidal, learned, rope, alibi, t5, shaw, got cope",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(given: dict[str, str], sentence: str) -> None:
    app = open_page("studio", lang="en", **given)
    assert not app.exception
    assert refusals(app) == [sentence]


def test_places_that_a_shorter_sentence_no_longer_has_count_as_none() -> None:
    app = open_page("studio", lang="en", sview="lines", slines="a9.b1.ak9", slayer="9", shead="9")
    assert not app.exception and refusals(app) == []
    for view in ("weight", "steps"):
        assert refusals(open_page("studio", sview=view, scell="b.99.99")) == []


@pytest.mark.parametrize(
    ("sentence", "view"),
    [
        *(("<script>alert(1)</script>", view) for view in ("grid", "head", "lines", "steps")),
        *((sentence, "grid") for sentence in ("$x$ *b*", "龘", " ", "👩‍👩‍👧‍👦", "مرحبا", "\x00")),
    ],
)
def test_any_sentence_is_text(sentence: str, view: str) -> None:
    app = open_page("studio", a=sentence, sview=view)
    assert not app.exception and refusals(app) == []
    assert "<script>" not in html(app)


def thumbs(side: int = 3, **changes):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(side), size=(2, 4, side))
    given = {
        "tokens": {"a": ["x"] * side, "b": ["y"] * side, "d": ["z"] * side},
        "thumbs": {"a": weights, "b": weights, "d": weights - weights[:, ::-1]},
        "allowed": {s: np.ones((side, side), bool) for s in "abd"},
        "scores": {"previous": np.zeros((2, 4)), "distance": np.full((2, 4), np.nan)},
        "uniform": {"previous": 0.3, "distance": np.nan},
        "look": {"side": "a", "measure": "previous", "sorted": True, "own": False},
        "labels": {},
        "alt": "grid",
        "file": "grid",
    }
    return given | changes


def test_the_grid_travels_as_bytes() -> None:
    given = thumbs()
    meta, arrays = unpack(grid.bundle(**given))
    assert (meta["layers"], meta["heads"]) == (2, 4)
    assert meta["measures"] == [
        {"name": "previous", "most": 1, "uniform": 0.3},
        {"name": "distance", "most": 2, "uniform": None},
    ]
    np.testing.assert_allclose(arrays["a.thumbs"] / 255, given["thumbs"]["a"], atol=0.5 / 255)
    np.testing.assert_allclose((arrays["d.thumbs"] - 127.0) / 127, given["thumbs"]["d"], atol=0.5 / 127)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"allowed": {s: np.ones((2, 2), bool) for s in "abd"}},
            r"allowed\['a'\] must have shape \(3, 3\), got \(2, 2\)",
        ),
        ({"scores": {"previous": np.zeros((4, 2))}}, r"scores\['previous'\] must have shape \(2, 4\), got \(4, 2\)"),
        ({"scores": {"luck": np.zeros((2, 4))}}, r"scores \['luck'\] have no text in LABELS"),
        ({"chosen": (2, 0)}, r"chosen \(2, 0\) is outside 2 layers of 4 heads"),
        ({"look": {"side": "c", "measure": "", "sorted": False, "own": False}}, "names no side or no score"),
        ({"tokens": {"a": ["x"], "b": ["y"] * 3, "d": []}}, r"thumbs\['a'\] has 3 cells along 1 tokens"),
    ],
)
def test_a_grid_that_does_not_fit_together(changes: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        grid.bundle(**thumbs(**changes))


def test_words_that_only_one_sentence_has_are_named() -> None:
    text = shown(open_page("studio", lang="en", a="猫爱鱼", b="狗爱猫"))
    assert "not in A − B: A 鱼·3 · B 狗·1" in text
    assert "not in A − B" not in shown(open_page("studio", lang="en"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"slayer": "99", "shead": "2"},
            "There is no layer 99 · head 2 among 3 layers of 4 heads; shown is layer {n} · head 2.",
        ),
        (
            {"sview": "head", "shead": "7"},
            "There is no layer – · head 7 among 3 layers of 4 heads; shown is layer {n} · head {h}.",
        ),
        (
            {"sview": "lines", "slines": "a1.a9.bk70"},
            "These tokens of the link are not in the sentences: a9 bk70",
        ),
        ({"sview": "weight", "scell": "b.9.1"}, "The weight b.9.1 of the link is not in the sentences."),
        ({"sview": "all", "slayers": "1,8", "sheads": "0,9"}, "Layers or heads that this model does not have: 8 9"),
        ({"spart": "cross"}, "This model has no decoder; shown is its attention to its own sentence."),
    ],
)
def test_what_a_link_asks_for_and_is_not_there_is_said(given: dict[str, str], sentence: str) -> None:
    app = open_page("studio", lang="en", smodel="twin:rope", **given)
    assert not app.exception and refusals(app) == []
    pattern = re.escape(sentence).replace(r"\{n\}", "[123]").replace(r"\{h\}", "[0-3]")
    assert re.search(pattern, " ".join(shown(app).split())), shown(app)
    fine = open_page("studio", lang="en", smodel="twin:rope", slayer="3", shead="3", slines="a1", scell="a.1.1")
    assert "of the link" not in shown(fine) and "There is no" not in shown(fine)


def test_a_layer_alone_shows_its_best_head() -> None:
    app = open_page("studio", lang="en", smodel="twin:rope", slayer="3", sview="head")
    assert [box.value for box in app.selectbox if box.label == "layer"] == [3]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("scell", "foo", "`scell` must be a sentence, query and key such as a.1.2, got foo"),
        ("slines", "<script>", "`slines` must be queries and keys such as a3.bk0, got <script>"),
        ("smeasure", "zz", "`smeasure` must be one of previous, next, first, same, entropy, distance, change, got zz"),
        ("op", "scale.nan", "`op scale` must be a whole number from 0 to 10000, got 'nan'"),
    ],
)
def test_a_parameter_is_refused_by_its_form(name: str, value: str, sentence: str) -> None:
    assert refusals(open_page("studio", lang="en", **{name: value})) == [sentence]


def test_the_sidebar_shows_what_changes_the_page() -> None:
    def labels(page: str, **given: str) -> set[str]:
        app = open_page(page, lang="en", **given)
        return {
            box.label for kind in ("selectbox", "number_input", "segmented_control") for box in app.sidebar.get(kind)
        }

    assert "position encoding" in labels("studio") and "heads" not in labels("studio")
    assert "position encoding" not in labels("studio", smodel="twin:t5")
    assert {"position encoding", "heads", "cut into"} <= labels("studio", smodel="untrained")
    assert "d_model" in labels("tables", table="sinusoidal") and "d_model" not in labels("tables")
