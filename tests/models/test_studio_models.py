"""The Studio page on models of every family: their own pieces, and an encoder-decoder's three attentions."""

import numpy as np
import pytest

from posviz.models import pretrained
from tests.test_pages import html, open_page, refusals, shown
from tests.test_studio import VIEWS, values


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
    given = {"a": A, "b": B, "slayer": "2", "shead": "1", "spart": part}
    for view in VIEWS:
        app = studio(folder, lang="en", sview=view, **given)
        assert not app.exception and refusals(app) == []
    model = pretrained.load(folder)
    trace = model.trace(model.tokenize(A))
    layer = {"self": trace.layers, "decoder": trace.decoder.layers, "cross": trace.cross}[part][1]
    app = studio(folder, sview="lines", **given)
    np.testing.assert_allclose(values(app), layer.head_weights(1), atol=1e-6)
    if part == "cross":
        assert layer.weights.shape[1:] == (len(trace.decoder.tokens), len(trace.tokens))


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
