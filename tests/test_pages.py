"""Every page through Streamlit's AppTest, in both languages: what a browser is not needed for."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from posviz import encodings
from posviz.models.twins import measure, sample, store
from posviz.ui import params, shell, table_sources
from posviz.ui.canvas import matrix
from posviz.ui.canvas.bundle import standalone_html
from posviz.ui.scenes import twin_heads

ROOT = Path(__file__).parents[1]
PAGES = ("order", "heatmap", "similarity", "rotation", "rope", "check", "attention", "tables", "compare", "myths")
CHOOSING = ("order", "heatmap", "similarity", "rotation", "attention")  # what they show depends on the encoding
TIMEOUT = 60


def open_page(page: str, **params: str) -> AppTest:
    """As somebody who follows a link to this page arrives: it is the first of the session."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    for name, value in params.items():
        app.session_state[name] = value
    if page != "order":
        app.switch_page(f"pages/{page}.py")
    app.run()
    return app


def html(app: AppTest) -> str:
    """All HTML blocks of the page but the style sheet."""
    return " ".join(e.proto.body for e in app.get("html") if "<style>" not in e.proto.body)


def shown(app: AppTest) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html(app)))


def spoken(app: AppTest) -> str:
    """What the page says itself, without poems."""
    return unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<div lang=\"zh\">.*?</div>", " ", html(app))))


def refusals(app: AppTest) -> list[str]:
    found = re.findall(r'role="alert">(.*?)</div>', html(app))
    return [unescape(re.sub("</?code>", "`", sentence)) for sentence in found]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", (*PAGES, "twins"))
def test_page_runs_in_both_languages(page: str, lang: str) -> None:
    app = open_page(page, lang=lang)
    assert not app.exception
    assert refusals(app) == []
    text = spoken(app)
    assert bool(re.search(r"[\u4e00-\u9fff]{4}", text)) == (lang == "zh"), text
    assert len(re.findall("pv-number", html(app))) >= 3


@pytest.mark.parametrize("page", [info.name for info in shell.PAGES])
def test_a_session_may_carry_every_parameter(page: str) -> None:
    """Their hidden boxes have keys of their own on every page."""
    app = open_page(page, **{param.name: param.default for param in params.active()})
    assert not app.exception
    assert refusals(app) == []


@pytest.mark.parametrize("encoding", list(encodings.ENCODINGS))
@pytest.mark.parametrize("page", CHOOSING)
def test_every_encoding_on_every_page(page: str, encoding: str) -> None:
    app = open_page(page, encoding=encoding)
    assert not app.exception
    assert refusals(app) == []
    # no measured promise fails
    assert "pv-fails" not in html(app)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("detail", ["formula", "code", "save"])
def test_details_open(page: str, detail: str) -> None:
    app = open_page(page)
    app.session_state[f"{page}_details"] = detail
    app.run()
    assert not app.exception
    assert refusals(app) == []
    if detail == "code":
        assert "import" in app.code[0].value
    if detail == "save":
        assert len(app.get("download_button")) == (2 if page in ("compare", "myths") else 3)


@pytest.mark.parametrize("encoding", list(encodings.ENCODINGS))
@pytest.mark.parametrize("page", CHOOSING)
def test_code_runs_and_leaves_values(page: str, encoding: str) -> None:
    app = open_page(page, encoding=encoding)
    app.session_state[f"{page}_details"] = "code"
    app.run()
    if page == "heatmap" and encoding == "none":
        assert not app.code
        return
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    assert namespace["values"] is not None


BAD = [
    (
        "d_model",
        "65",
        "`n_heads` must divide d_model, got 4 heads for d_model 65; d_model 65 can be split into 1, 5, 13 heads",
    ),
    ("d_model", "0", "`d_model` must be a whole number from 1 to 1024, got 0"),
    ("d_model", "100000", "`d_model` must be a whole number from 1 to 1024, got 100000"),
    ("d_model", "abc", "`d_model` must be a whole number from 1 to 1024, got 'abc'"),
    ("d_model", "", "`d_model` must be a whole number from 1 to 1024, got ''"),
    ("d_model", "1_0", "`d_model` must be a whole number from 1 to 1024, got '1_0'"),
    (
        "heads",
        "5",
        "`n_heads` must divide d_model, got 5 heads for d_model 64; d_model 64 can be split into 1, 2, 4, 8, 16, 32, 64 heads",
    ),
    ("base", "1", "`base` must be a finite number above 1 and up to 1e+12, got 1.0"),
    ("base", "inf", "`base` must be a finite number above 1 and up to 1e+12, got inf"),
    ("base", "nan", "`base` must be a finite number above 1 and up to 1e+12, got nan"),
    ("base", "ten", "`base` must be a finite number above 1 and up to 1e+12, got 'ten'"),
    ("max_len", "2", "`max_len` must be at least the sentence's 3 tokens, got 2"),
    ("max_len", "9000", "`max_len` must be a whole number from 1 to 8192, got 9000"),
    (
        "encoding",
        "foo",
        f"`encoding` must be one of {', '.join(encodings.ENCODINGS)}, got foo",
    ),
    ("unit", "emoji", "`unit` must be one of character, word, byte, got emoji"),
    ("mask", "<script>", "`mask` must be one of none, causal, got <script>"),
    ("seed", "-1", "`seed` must be a whole number from 0 to 2147483647, got -1"),
    ("precision", "float8", "`precision` must be one of float32, float64, got float8"),
    ("a", "", "Sentence A is empty: type a word, or choose one of the examples."),
    ("a", "好" * 513, "the sentence has 513 tokens; up to 512 are shown"),
    ("a", "x" * 20_001, "the sentence has 20,001 characters; up to 20,000 are shown"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
def test_bad_input_is_one_sentence(name: str, value: str, sentence: str) -> None:
    app = open_page("order", lang="en", **{name: value})
    assert not app.exception
    assert refusals(app) == [sentence]
    # nothing is lost: the control keeps what was asked for, the rest of the page stays
    assert app.session_state[name] == value
    assert "Without positions" in shown(app)
    # and putting it right brings the picture back
    app.session_state[name] = {"a": "我爱你"}.get(name, "") or {
        "d_model": "64",
        "heads": "4",
        "base": "10000",
        "max_len": "128",
        "encoding": "rope",
        "unit": "word",
        "mask": "none",
        "seed": "1",
        "precision": "float64",
    }[name]
    app.run()
    assert refusals(app) == []


def test_odd_d_head_is_refused_for_rope_alone() -> None:
    app = open_page("order", lang="en", encoding="rope", d_model="28")
    assert refusals(app) == ["`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32"]
    app.session_state["encoding"] = "alibi"
    app.run()
    assert refusals(app) == []


def test_refusals_are_translated() -> None:
    app = open_page("order", lang="zh", d_model="65")
    assert refusals(app) == ["头数必须整除 d_model，现在是 4 个头、d_model 65；d_model 65 可以分成 1, 5, 13 个头"]


@pytest.mark.parametrize(
    "sentence",
    [
        "<script>alert(1)</script>",
        "$x^2$ *bold* :red[x] `code`",
        "שלום עולם",
        "👩‍👩‍👧‍👦 é",
        "a\x00b",
        "=1+1",
        "\u202eabc",
    ],
)
def test_hostile_sentences_are_text(sentence: str) -> None:
    for page in ("order", "attention"):
        app = open_page(page, a=sentence, b=sentence[::-1] if sentence.isascii() else sentence)
        assert not app.exception
        assert refusals(app) == []
        bodies = html(app)
        assert "<script>" not in bodies


def test_the_home_page_answers_the_question() -> None:
    text = shown(open_page("order", lang="en"))
    numbers = re.findall(r"(\S+)\s+should be 0 \(float32\)", text)
    assert len(numbers) == 2, text
    for number in numbers:
        exponent = re.search(r"×10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", number)
        assert number == "0" or (exponent and exponent[1] in ("⁶", "⁷", "⁸")), number
    assert "should be above 0" in text


def test_causal_mask_and_mirror_are_explained() -> None:
    assert "causal mask" in shown(open_page("order", lang="en", mask="causal"))
    assert "B is A read backwards" in shown(open_page("order", lang="en", encoding="alibi"))
    assert "share no word" in shown(open_page("order", lang="en", a="猫", b="狗"))
    assert "Unmatched: 0 of A's and 1 of B's words" in shown(open_page("order", lang="en", a="我爱你", b="我很爱你"))
    assert "nearest occurrence" in shown(open_page("order", lang="en", a="我知道你知道", b="你知道我知道"))


# ---------------------------------------------------------------- trained twins
def test_the_attention_page_begins_with_trained_heads() -> None:
    app = open_page("attention", lang="en")
    text = shown(app)
    assert "bundled twin · trained on 88,000 texts" in text and "untrained" not in text.split("bundled twin")[1]
    app.session_state["model"] = "untrained"
    app.run()
    assert "untrained · seed 0" in shown(app)


@pytest.mark.parametrize(
    "given",
    [
        {"a": "dog", "b": "god"},  # no character that a twin knows
        {"unit": "word"},
        {"a": "好" * 200, "b": "好" * 200, "max_len": "200"},
    ],
)
def test_what_no_twin_can_read_is_shown_untrained(given: dict[str, str]) -> None:
    app = open_page("attention", lang="en", **given)
    assert refusals(app) == []
    assert "untrained · seed 0" in shown(app)


def test_unknown_characters_are_named() -> None:
    text = shown(open_page("attention", lang="en", a="我龘你", b="你<我"))
    assert "these are not among them and all look alike to them: 龘 <" in text


@pytest.mark.parametrize("name", store.available())
@pytest.mark.parametrize("layer", ["1", "2", "3"])
def test_every_layer_of_every_twin(name: str, layer: str) -> None:
    app = open_page("attention", encoding=name, layer=layer)
    assert not app.exception
    assert refusals(app) == []
    assert "pv-fails" not in html(app)
    app.session_state["attention_details"] = "code"
    app.run()
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    assert float((namespace["values"] - torch.tensor(namespace["trace"].weights)).abs().max()) < 1e-5
    # the cell that is chosen at first is one that may be looked at
    app.session_state["attention_details"] = "formula"
    app.run()
    assert "This key is masked" not in shown(app) and "这个键被掩码遮住" not in shown(app)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"layer": "4"}, "`layer` must be from 1 to the twin's 3 layers, got 4"),
        ({"layer": "0"}, "`layer` must be a whole number from 1 to 12, got 0"),
        ({"model": "gpt"}, "`model` must be one of twin, untrained, got gpt"),
        ({"model": "twin", "a": "我" * 160, "max_len": "200"}, "the twins take up to 159 characters, got 160"),
    ],
)
def test_bad_choices_of_a_twin(given: dict[str, str], sentence: str) -> None:
    assert refusals(open_page("attention", lang="en", **given)) == [sentence]


def test_probabilities_of_both_sentences() -> None:
    text = shown(open_page("order", lang="en"))
    assert "Which of the two would a model write that has been trained?" in text
    assert len(re.findall(r"\d\.\d×10⁻", text.split("Which of the two")[1])) == 2 * len(store.available())
    assert "Which of the two" not in shown(open_page("order", lang="en", a="dog", b="god"))


def test_trained_tables_beside_the_untrained() -> None:
    app = open_page("heatmap", lang="en", encoding="learned", compare="trained")
    assert not app.exception and refusals(app) == []
    assert "untrained · seed 0 | bundled twin" in shown(app)
    app = open_page("heatmap", lang="en", encoding="sinusoidal", compare="trained")  # nothing to train
    assert not app.exception and refusals(app) == []
    for encoding in ("learned", "t5"):
        assert not open_page("similarity", encoding=encoding, **{"with": "learned,t5"}).exception


def test_twins_write_and_are_kept() -> None:
    app = open_page("twins", lang="en", opening="明月")
    assert not app.exception and refusals(app) == []
    text = shown(app)
    assert text.count("明月") == len(store.available())
    assert len(re.findall("pv-number", html(app))) >= 3
    assert "poems of sixteen lines" in text
    app.session_state["twins_details"] = "code"
    app.run()
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    flat = re.sub(r"\s", "", shown(app))
    for poem in namespace["values"].values():
        lines = [words + mark for words, mark in sample.lines(poem)]
        assert all(line.replace("明月", "", 1) in flat for line in lines)


def test_a_head_of_a_twin_is_said_and_leads_to_the_studio() -> None:
    hint = "Click a dot: the same head in every panel, and a way to its weights."
    assert hint in shown(open_page("twins", lang="en"))
    head = store.results()["twins"]["rope"]["heads"][4 + 3]
    assert (head["layer"], head["head"]) == (1, 3)
    app = open_page("twins", lang="en", smodel="twin:rope", slayer="2", shead="3")
    assert not app.exception and hint not in shown(app)
    best = max((name for name in measure.ROLES), key=lambda name: head[name]["share"] - head[name]["chance"])
    share, error, chance = (head[best][key] for key in ("share", "error", "chance"))
    said = f"RoPE, layer 2, head 3: {twin_heads.ROLE_NAMES[best]} {100 * share:.0f} % ± {200 * error:.1f} % (even attention {100 * chance:.0f} %); "
    assert said in shown(app)
    for given in (
        {"smodel": "twin:rope"},
        {"smodel": "untrained", "slayer": "1", "shead": "0"},
        {"slayer": "9", "shead": "0", "smodel": "twin:rope"},
    ):
        assert hint in shown(open_page("twins", lang="en", **given))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"opening": "春" * 41}, "the opening may have up to 40 characters, got 41"),
        ({"temperature": "-1"}, "`temperature` must be a finite number from 0 and up to 5, got -1.0"),
        ({"temperature": "nan"}, "`temperature` must be a finite number from 0 and up to 5, got nan"),
        ({"dice": "x"}, "`dice` must be a whole number from 0 to 2147483647, got 'x'"),
        ({"form": "haiku"}, "`form` must be one of quatrain, verse, song, got haiku"),
    ],
)
def test_bad_wishes_for_a_poem(given: dict[str, str], sentence: str) -> None:
    assert refusals(open_page("twins", lang="en", **given)) == [sentence]


@pytest.mark.parametrize("opening", ["<script>alert(1)</script>", "$x$ *b*", "龘", "", " ", "👩‍👩‍👧‍👦", "，。"])
def test_any_opening_is_text(opening: str) -> None:
    app = open_page("twins", opening=opening)
    assert not app.exception and refusals(app) == []
    assert "<script>" not in html(app)


def test_standalone_html_needs_no_network() -> None:
    data = matrix.bundle(
        [matrix.Panel(source=matrix.Dense(values=np.eye(3)), vmin=-1, vmax=1)],
        labels={},
        alt="",
        file="x",
    )
    page = standalone_html("matrix", data, title="<b>&", caption="'\"</p>", lang="en")
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert not re.search(r"(src|href)=[\"']https?:", page)
    assert json.loads(json.dumps(page)) == page


def test_the_comparison_sorts_and_filters() -> None:
    def names(app: AppTest) -> list[str]:
        return re.findall(r'<tr id="row-(\w+)">', html(app))

    assert names(open_page("compare", lang="en")) == list(encodings.ENCODINGS)
    rotary = [name for name, cls in encodings.ENCODINGS.items() if cls.kind == "rotary"]
    assert names(open_page("compare", lang="en", enters="rotary")) == rotary
    by_size = names(open_page("compare", lang="en", sort="parameters"))
    assert by_size[-1] == "deberta" and set(by_size) == set(encodings.ENCODINGS)


@pytest.mark.parametrize("view", ["look", "similarity", "rotation", "order", "attention"])
@pytest.mark.parametrize(
    ("one", "two"), [("none", "cope"), ("rope_2d", "fire"), ("learned", "learned"), ("rope", "mrope")]
)
def test_any_two_side_by_side(view: str, one: str, two: str) -> None:
    app = open_page("compare", one=one, two=two, pair_view=view)
    assert not app.exception
    assert refusals(app) == []


def test_what_does_not_suit_the_sizes_is_said_once() -> None:
    app = open_page("compare", lang="en", d_model="36", heads="4", one="none", two="alibi")
    assert not app.exception
    assert "`d_head` must be even for RoPE, got 9".replace("`", "") in shown(app).replace("`", "")
    assert 'id="row-rope"' not in html(app) and 'id="row-alibi"' in html(app)


@pytest.mark.parametrize("need", ["short", "long", "extrapolate", "relative"])
def test_the_guide_ties_each_advice_to_a_measurement(need: str) -> None:
    text = shown(open_page("compare", lang="en", need=need))
    assert "see the table" in text
    assert re.search("supports it|speaks against it|says nothing about it", text)


def test_a_prediction_reveals_its_myth_alone() -> None:
    app = open_page("myths", lang="en", guesses="falls:true")
    assert not app.exception
    assert html(app).count("pv-verdict") == 1
    assert "Measured: false" in shown(app) and "you said: true" in shown(app)
    assert "pv-wrong" in html(app)
    app = open_page("myths", lang="en", guesses="falls:false")
    assert "pv-right" in html(app) and "1 / 1" in shown(app)


def test_all_myths_in_both_languages() -> None:
    from posviz.myths import MYTHS

    guesses = ",".join(f"{key}:shown" for key in MYTHS)
    for lang in ("en", "zh"):
        app = open_page("myths", lang=lang, guesses=guesses)
        assert not app.exception and refusals(app) == []
        assert html(app).count("pv-verdict") == len(MYTHS)
        for myth in MYTHS.values():
            assert myth.why(lang) in shown(app)


def test_a_prediction_nobody_can_make_is_refused() -> None:
    app = open_page("myths", lang="en", guesses="falls:maybe")
    assert refusals(app) == ["`guesses` must be one of true, false, depends, shown, got maybe"]


@pytest.mark.parametrize("digits", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("page", ["heatmap", "similarity", "rotation"])
def test_the_error_of_fewer_digits_is_drawn(page: str, digits: str) -> None:
    plain, narrow = (open_page(page, lang="en", digits=d) for d in ("float64", digits))
    assert not narrow.exception and refusals(narrow) == []
    canvases = [len(app.get("bidi_component")) for app in (plain, narrow)]
    assert canvases[1] == canvases[0] + 1
    if page == "heatmap":
        assert f"computed in {digits}" in shown(narrow)


# ---------------------------------------------------------------- ways back
@pytest.mark.parametrize(
    ("page", "name", "value"),
    [
        ("surgery", "op", "shuffle.-1"),
        ("tables", "trows", "1"),
        ("similarity", "k", "-1"),
        ("order", "trows", "1"),
        ("myths", "guesses", "bad"),
    ],
)
def test_a_value_that_means_nothing_has_a_way_back(page: str, name: str, value: str) -> None:
    app = open_page(page, lang="en", **{name: value})
    assert not app.exception and len(refusals(app)) == 1
    app.button(key=f"default_{name}").click().run()
    assert not app.exception and refusals(app) == []
    assert app.session_state[name] == params.find(name).default


def test_all_myths_can_be_revealed_whatever_the_link_says() -> None:
    app = open_page("myths", lang="en", guesses="bad")
    next(button for button in app.button if button.label == "Reveal all").click().run()
    assert not app.exception and refusals(app) == []
    assert shown(app).count("Measured: ") >= 10


def test_a_refusal_that_is_kept_holds_nothing() -> None:
    app = open_page("tables", lang="en")
    app.file_uploader(key="w_table_file").set_value(("a.csv", b"1,2\n" * 5 + b"x,y\n", "")).run()
    kept = app.session_state[table_sources.REFUSED]
    app.run()
    assert kept.__traceback__ is None and kept.__context__ is None
    assert str(kept) in refusals(app)


def test_a_bad_upload_leaves_the_good_one() -> None:
    app = open_page("tables", lang="en")
    box = app.file_uploader(key="w_table_file")
    box.set_value(("good.csv", b"1,2\n3,4\n5,7\n", "")).run()
    assert not app.exception and refusals(app) == [] and "it stays in this session" in shown(app)
    app.file_uploader(key="w_table_file").set_value(("bad.npy", b"\x80\x04", "")).run()
    assert refusals(app) == ["the file is none of .npy, .npz, .safetensors and .csv"]
    app.file_uploader(key="w_table_file").set_value([]).run()
    assert not app.exception and refusals(app) == [] and "it stays in this session" in shown(app)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"selection": None},
        {"selection": {}},
        {"selection": {"points": 5}},
        {"selection": {"points": [5]}},
        {"selection": {"points": {"0": 1}}},
        {"selection": {"points": [{"customdata": 5}]}},
        {"selection": {"points": [{"customdata": {"0": 0, "1": 1}}]}},
        {"selection": {"points": [{"customdata": ["x", None]}]}},
        {"selection": {"points": [{"customdata": [1]}]}},
    ],
)
def test_a_chart_may_send_anything(sent) -> None:
    assert None in twin_heads._place(sent)


def test_the_dot_that_was_clicked() -> None:
    assert twin_heads._place({"selection": {"points": [{"customdata": [2, 7]}]}}) == (2, 7)


def test_swapping_mends_a_link_that_says_a_sentence_twice() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT)
    app.query_params["a"] = ["x", "y"]
    app.query_params["lang"] = "en"
    app.run()
    assert [text.split(":")[0] for text in refusals(app)] == ["the link gives `a` more than once"]
    next(button for button in app.button if "swap" in button.label).click().run()
    assert not app.exception and refusals(app) == []
