"""The Studio page on models of every family: their own pieces, and an encoder-decoder's three attentions."""

import numpy as np
import pytest

from posviz import compare, survey
from posviz.models import pretrained
from posviz.text import visible
from posviz.ui.canvas import heads
from tests.test_pages import html, open_page, refusals, shown
from tests.test_studio import VIEWS, values
from tests.ui.unpacked import unpack


def studio(name: str, **given):
    """The page for somebody who has asked for the model in this session."""
    return open_page("studio", smodel=name, _asked_models={name}, **given)


A, B = "the dog bites the man", "the man bites the dog"


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_a_family_in_the_studio(made, name: str) -> None:
    folder = str(made(name))
    for view in VIEWS:
        app = studio(folder, lang="en", sview=view, a=A, b=B, slayer="2", shead="1")
        assert not app.exception and refusals(app) == []
        assert "pretrained" in shown(app)
    model = pretrained.load(folder)
    weights = model.trace(model.tokenize(A)).layers[1].head_weights(1)
    app = studio(folder, sview="head", a=A, b=B, slayer="2", shead="1")
    np.testing.assert_allclose(values(app), weights, atol=1e-6)


@pytest.mark.parametrize("part", ["self", "decoder", "cross"])
def test_an_encoder_decoders_three_attentions(made, part: str) -> None:
    folder = str(made("t5"))
    given = {"lang": "en", "a": A, "b": B, "slayer": "2", "shead": "1", "spart": part}
    model = pretrained.load(folder)
    trace = model.trace(model.tokenize(A))
    layers = {"self": trace.layers, "decoder": trace.decoder.layers, "cross": trace.cross}[part]
    if part == "cross":
        assert layers[1].weights.shape[1:] == (len(trace.decoder.tokens), len(trace.tokens))
    head = layers[1].head_weights(1)
    mean = np.mean([layer.weights for layer in layers], axis=(0, 1))
    expected = {"head": head, "lines": head, "weight": head[2], "steps": head[2], "all": mean}
    for view in VIEWS:
        app = studio(folder, sview=view, scell="a.2.1", **given)
        assert not app.exception and refusals(app) == []
        found = values(app)
        assert refusals(app) == []
        if view != "grid":
            np.testing.assert_allclose(found, expected[view], atol=1e-5)


def bundle_of(monkeypatch, folder: str, **given) -> tuple[dict, dict]:
    """What the page gives the matrices to draw."""
    drawn: list[bytes] = []
    monkeypatch.setattr(heads, "show", lambda data, **_options: drawn.append(data))
    app = studio(folder, **given)
    assert not app.exception and refusals(app) == []
    return unpack(drawn[-1])


@pytest.mark.parametrize(("a", "b"), [(A, B), ("the cat", "a mouse loves the man"), ("man", "cat")])
@pytest.mark.parametrize("special", ["shown", "hidden"])
def test_the_matrices_of_cross_attention(made, monkeypatch, a: str, b: str, special: str) -> None:
    """A - B of every query and key that both sentences have, worked out one by one."""
    folder = str(made("t5"))
    given = {"a": a, "b": b, "spart": "cross", "sspecial": special, "sview": "head", "slayer": "1", "shead": "2"}
    meta, arrays = bundle_of(monkeypatch, folder, lang="en", scell="a.1.1", **given)
    assert meta["labels"]["legend_axes"] == "down: query (decoder), across: key (encoder)"
    model = pretrained.load(folder)
    seen = [survey.see(model.trace(model.tokenize(s)).cross[0], head=2, special=special == "shown") for s in (a, b)]
    for side, one in zip("ab", seen, strict=True):
        assert meta["tokens"][side] == [visible(piece) for piece in one.tokens.pieces]
        assert meta["keys"][side] == [visible(piece) for piece in one.keys.pieces]
        np.testing.assert_allclose(arrays[f"{side}.weights"], one.weights, atol=1e-6)
    pairs = compare.match(*(one.tokens for one in seen))
    key_pairs = compare.match(*(one.keys for one in seen))
    assert (meta["pairs"], meta["key_pairs"]) == ([list(p) for p in pairs], [list(p) for p in key_pairs])
    by_hand = [[seen[0].weights[0, i, k] - seen[1].weights[0, j, m] for k, m in key_pairs] for i, j in pairs]
    shape = (1, len(pairs), len(key_pairs))
    np.testing.assert_allclose(arrays["d.weights"], np.reshape(by_hand, shape), atol=1e-6)
    if special == "shown":
        shares = np.exp(arrays["a.content"] - arrays["a.content"].max(-1, keepdims=True))
        np.testing.assert_allclose(shares / shares.sum(-1, keepdims=True), seen[0].weights, atol=1e-5)
        assert meta["selected"] == {"sentence": "a", "head": 0, "row": 1, "col": 1}
    else:
        assert meta["selected"] is None and meta["parts"]["a"] == []


def test_heads_of_cross_attention_together(made, monkeypatch) -> None:
    folder = str(made("t5"))
    given = {"a": A, "b": B, "spart": "cross", "sview": "all"}
    _meta, arrays = bundle_of(monkeypatch, folder, sgather="max", sheads="0,2", **given)
    model = pretrained.load(folder)
    trace = model.trace(model.tokenize(B))
    together = np.max([layer.weights[[0, 2]] for layer in trace.cross], axis=(0, 1))
    np.testing.assert_allclose(arrays["b.weights"][0], together, atol=1e-6)


@pytest.mark.parametrize(
    ("lang", "start"),
    [
        (
            "en",
            "rollout follows tokens that look at one another through the layers; in cross-attention the {n} queries "
            "are the decoder's tokens, the {keys} keys the encoder's: choose the mean or the largest weight",
        ),
        (
            "zh",
            "展开（rollout）沿各层追踪互相关注的词元；交叉注意力中 {n} 个查询是解码器的词元，{keys} 个键是编码器的："
            "请选平均或最大",
        ),
    ],
)
def test_cross_attention_has_no_rollout(made, lang: str, start: str) -> None:
    folder = str(made("t5"))
    app = studio(folder, lang=lang, a=A, b=B, spart="cross", sview="all", sgather="rollout")
    model = pretrained.load(folder)
    trace = model.trace(model.tokenize(A))
    assert not app.exception
    assert refusals(app) == [start.format(n=len(trace.decoder.tokens), keys=len(trace.tokens))]
    app.button_group(key="w_sgather").set_value("mean").run()
    assert refusals(app) == []
    assert app.button_group(key="w_sgather").options == (["mean", "largest"] if lang == "en" else ["平均", "最大"])


def test_lines_of_keys_that_a_shorter_sentence_no_longer_has(made) -> None:
    """The decoder reads one token more than the encoder: its places are not the keys'."""
    folder = str(made("t5"))
    model = pretrained.load(folder)
    trace = model.trace(model.tokenize(A))
    last = max(len(trace.decoder.tokens), len(trace.tokens)) - 1
    app = studio(folder, a=A, b=B, spart="cross", sview="lines", slines=f"a{last}.ak{last}.bk{last}")
    assert not app.exception and refusals(app) == []


def test_special_tokens_of_a_real_tokenizer_can_be_hidden(made) -> None:
    app = studio(str(made("bert")), lang="en", a=A, b=B, sspecial="hidden", sview="head")
    assert not app.exception and refusals(app) == []
    assert "[CLS]" not in html(app)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("local:nothing", "there is no fetched model nothing; here are "),
        ("/nowhere/at/all", "/nowhere/at/all is not a folder"),
    ],
)
def test_models_that_are_not_there(name: str, start: str) -> None:
    (sentence,) = refusals(studio(name, lang="en"))
    assert sentence.startswith(start)


def test_a_link_opens_no_model_that_nobody_asked_for(made) -> None:
    app = open_page("studio", lang="en", smodel=str(made("bert")), a=A, b=B)
    assert not app.exception and refusals(app) == []
    assert "Opening it reads that folder" in shown(app)
    app.button(key="agree_model").click().run()
    assert "pretrained" in shown(app)
