"""Trained tables on the pages of the encodings: a twin's, a real model's, a folder's, your own."""

import io
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from posviz import encodings, models, views
from posviz.models.twins import store
from posviz.ui import asked, table_sources
from tests.models.conftest import made  # noqa: F401
from tests.test_pages import html, open_page, refusals, shown

SINES = encodings.make("sinusoidal").table(range(60), 16).numpy()


@pytest.fixture
def fetched(made, monkeypatch, tmp_path):  # noqa: F811
    """A BERT and a Llama, as `make models` leaves them."""
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path))
    for name in ("bert", "llama", "t5"):
        (tmp_path / name).symlink_to(made(name))


def choices(app: AppTest, label: str) -> list[str]:
    return next(box.options for box in app.selectbox if box.label == label)


def code(app: AppTest, page: str) -> dict:
    app.session_state[f"{page}_details"] = "code"
    app.run()
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    return namespace


def test_a_real_table_on_the_heatmap(fetched) -> None:
    app = open_page("heatmap", lang="en", encoding="learned", compare="trained")
    assert choices(app, "trained table") == ["learned, trained twin", "bert"]  # RoPE has none, T5's is another kind
    assert "bundled twin" in shown(app)
    assert "untrained: its numbers are 14 times smaller, so on the scale of both it is nearly blank" in shown(app)
    app.session_state["beside"] = "local:bert"
    app.run()
    assert not app.exception and refusals(app) == []
    assert "untrained · seed 0 | pretrained · bert · BERT" in shown(app)


def test_a_real_table_among_the_curves(fetched) -> None:
    app = open_page("similarity", lang="en", encoding="sinusoidal", max_len="32")
    assert choices(app, "a trained table") == ["none", "learned, trained twin", "bert"]
    assert "pretrained" not in shown(app)
    app.session_state["beside"] = "local:bert"
    app.run()
    assert not app.exception and refusals(app) == []
    table = models.open_model("local:bert").position_table()
    curve = views.table_alikeness(table[:32], kind="cosine")
    assert f"{len(curve.rises)} / 31 " in shown(app) and "bert: steps away from 0" in shown(app)
    assert "pretrained · bert · BERT" in shown(app)
    assert np.array_equal(code(app, "similarity")["values"], curve.mean)


def test_a_real_bias_beside_an_untrained_one(fetched) -> None:
    app = open_page("heatmap", lang="en", encoding="t5", compare="trained", beside="local:t5", max_len="16")
    assert not app.exception and refusals(app) == []
    assert choices(app, "trained table") == ["T5 bias, trained twin", "t5"]
    app = open_page("similarity", lang="en", encoding="alibi", beside="local:t5", max_len="32", head="2")
    assert not app.exception and refusals(app) == []
    model = models.open_model("local:t5")
    bias = model.trace(model.tokenize("the dog bites the man")).layers[0].bias[2]
    values = code(app, "similarity")["values"]  # by key - query, from -31
    assert np.allclose(values[31 : 31 + bias.shape[1]], bias[0], atol=1e-6)
    assert np.allclose(values[31 - bias.shape[0] + 1 : 32], bias[::-1, 0], atol=1e-6)


@pytest.mark.parametrize("encoding", ["learned", "t5", "sinusoidal", "shaw"])
def test_the_own_twin_is_the_default(encoding: str) -> None:
    text = shown(open_page("similarity", lang="en", encoding=encoding, **{"with": encoding}))
    assert ("bundled twin" in text) == (encoding in store.available() and encoding != "sinusoidal")
    assert "bundled twin" not in shown(open_page("similarity", lang="en", encoding=encoding, beside="off"))


@pytest.mark.parametrize("page", ["heatmap", "similarity", "tables"])
def test_an_upload_stands_beside_the_encodings(page: str) -> None:
    """Whether it was uploaded there, or on the page of tables."""
    name = "table" if page == "tables" else "beside"
    app = open_page(page, lang="en", encoding="learned", compare="trained")
    buffer = io.BytesIO()
    np.save(buffer, SINES)
    app.file_uploader(key=f"w_{name}_file").set_value(("<b>.npy", buffer.getvalue(), "")).run()
    assert app.session_state[name] == "upload"
    app.session_state["beside"] = "upload"
    for page in ("heatmap", "similarity"):
        app.switch_page(f"pages/{page}.py")
        app.run()
        assert not app.exception and refusals(app) == []
        assert "it stays in this session" in shown(app) and "<b>.npy" not in html(app)
    # shorter than max_len: the matrix is empty behind its last row, and its middle is chosen
    rises = views.table_alikeness(SINES, kind="cosine").rises
    assert re.search(rf"{len(rises)} / 59 .*<b>.npy: steps", re.sub(r"\s+", " ", shown(app)))


def test_a_folder_asked_for_is_offered_and_nothing_else(fetched, made) -> None:  # noqa: F811
    bert, llama = str(made("bert")), str(made("llama"))
    asked_for = (bert, llama, "/nowhere", "no/such")
    app = open_page("tables", lang="en", _asked_models=asked_for, table=bert)
    assert not app.exception and refusals(app) == [] and "pretrained" in shown(app)
    named = choices(app, "table")
    assert any(bert[:20] in name for name in named)
    assert not any(part in name for name in named for part in (llama[-20:], "nowhere", "no/such"))


@pytest.mark.parametrize(
    ("page", "given", "sentence"),
    [
        ("heatmap", "local:x", "`beside` must be one of twin:learned, got local:x"),
        ("similarity", "<script>", "`beside` must be one of twin:learned, got <script>"),
        (
            "similarity",
            "upload",
            "this link shows a table that somebody uploaded in another session: upload it here to see it",
        ),
        ("heatmap", "\n", "`beside` must be a name of up to 200 characters, got �"),
    ],
)
def test_bad_names_are_one_sentence(page, given, sentence, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path))
    app = open_page(page, lang="en", encoding="learned", compare="trained", beside=given)
    assert not app.exception and refusals(app) == [sentence]


def test_a_model_from_the_hub_may_turn_out_to_have_another_table(fetched, monkeypatch) -> None:
    """Before it is opened nobody knows what it has."""
    entry = models.Entry("hub:a/t5", "hub", models.catalog()[0].title)
    real = models.open_model
    monkeypatch.setattr(models, "catalog", lambda: (entry,), raising=False)
    monkeypatch.setattr(models, "open_model", lambda key, **_: real("local:t5"), raising=False)
    app = open_page("heatmap", lang="en", encoding="learned", compare="trained", beside="hub:a/t5")
    assert refusals(app) == ["the rows of t5's table are not of the kind that this encoding has; choose another table"]


def test_no_link_adds_to_what_was_asked_for() -> None:
    assert asked.names() == () and "/etc" not in table_sources.names()
