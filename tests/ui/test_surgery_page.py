"""The surgery page through AppTest: both languages, every change, the code it shows, models that may not be opened."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from posviz import models
from posviz.models import pretrained, registry, surgery
from posviz.models.twins import store

ROOT = Path(__file__).parents[2]
TWINS = [name for name in store.available() if name != "none"]


def open_page(**params: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in params.items():
        app.session_state[name] = value
    return app.switch_page("pages/surgery.py").run()


def html(app: AppTest) -> str:
    return " ".join(e.proto.body for e in app.get("html") if "<style>" not in e.proto.body)


def shown(app: AppTest) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html(app))))


def refusals(app: AppTest) -> list[str]:
    found = re.findall(r'role="alert">(.*?)</div>', html(app))
    return [unescape(re.sub("</?code>", "`", sentence)) for sentence in found]


@pytest.fixture
def local(made_bert, monkeypatch, tmp_path):
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path))
    (tmp_path / "tiny").symlink_to(made_bert)
    return "local:tiny"


@pytest.fixture(scope="module")
def made_bert(tmp_path_factory):
    """A tiny BERT with a learned table and an English vocabulary."""
    import json

    import transformers as hf
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    folder = tmp_path_factory.mktemp("bert")
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(["dog bites man"], trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.save(str(folder / "tokenizer.json"))
    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = hf.BertConfig(vocab_size=made.get_vocab_size(), max_position_embeddings=40, **sizes)
        network = hf.BertModel(config)
    for parameter in network.parameters():
        parameter.data *= 8 if parameter.dim() > 1 else 1
    network.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("stage", ["before", "after", "change"])
def test_it_opens_in_both_languages(lang, stage) -> None:
    app = open_page(lang=lang, stage=stage)
    assert not app.exception
    assert refusals(app) == []
    assert bool(re.search(r"[\u4e00-\u9fff]{4}", shown(app))) == (lang == "zh")
    assert len(re.findall("pv-number", html(app))) >= 3


@pytest.mark.parametrize("name", TWINS)
def test_every_change_of_every_shipped_twin(name) -> None:
    app = open_page(lang="en", smodel=f"twin:{name}")
    for change in surgery.changes_for(store.load(name)):
        app.session_state["op"] = change
        app.run()
        assert not app.exception
        if name == "learned" and change in ("shift",):
            assert refusals(app) == [] or "beyond a learned table" in refusals(app)[0]
        else:
            assert refusals(app) == []
            assert surgery.CHANGES[change].says.en in shown(app)
        assert "pv-fails" not in html(app)


def test_the_words_show_what_they_are_told() -> None:
    app = open_page(lang="en", smodel="twin:rope", op="shift.20")
    assert "我 21 爱 22 你 23" in shown(app)
    assert "pv-holds" in html(app)  # a shift is nothing to RoPE
    app.session_state["stage"] = "before"
    app.run()
    assert "我 1 爱 2 你 3" in shown(app)


def test_the_numbers_are_the_cores() -> None:
    app = open_page(lang="en", smodel="twin:sinusoidal", op="mean")
    model = models.open_model("twin:sinusoidal")
    a, b = (model.tokenize(text) for text in ("我爱你", "你爱我"))
    outcome = surgery.operate(model, a, b, surgery.Operation("mean"))
    text = shown(app)
    assert f"{outcome.alike[1]:.4f} intact: {outcome.alike[0]:.4f}" in text
    assert f"{outcome.loss[1]:.3f} intact: {outcome.loss[0]:.3f}" in text


@pytest.mark.parametrize("stage", ["before", "after", "change"])
@pytest.mark.parametrize("name", TWINS[:3])
def test_the_code_gives_the_picture(name, stage) -> None:
    app = open_page(lang="en", smodel=f"twin:{name}", stage=stage, slayer="2")
    app.session_state["surgery_details"] = "code"
    app.run()
    namespace: dict = {}
    exec(app.code[0].value, namespace)
    model = models.open_model(f"twin:{name}")
    a, b = (model.tokenize(text) for text in ("我爱你", "你爱我"))
    outcome = surgery.operate(model, a, b, surgery.Operation(surgery.changes_for(model)[0]))
    old, new = (traces[0].layers[1].weights for traces in (outcome.before, outcome.after))
    want = {"before": old, "after": new, "change": np.abs(new - old)}[stage]
    np.testing.assert_array_equal(namespace["values"], want)


@pytest.mark.parametrize("detail", ["formula", "save"])
def test_details_open(detail) -> None:
    app = open_page(lang="en")
    app.session_state["surgery_details"] = detail
    app.run()
    assert not app.exception and refusals(app) == []
    if detail == "save":
        assert len(app.get("download_button")) == 3


def test_a_fetched_model_without_positions_is_a_bag_of_words(local) -> None:
    app = open_page(lang="en", smodel=local, a="dog bites man", b="man bites dog")
    assert not app.exception and refusals(app) == []
    assert "1.0000 intact: 0." in shown(app)
    assert "[CLS]" in shown(app) and "pretrained · tiny · BERT" in shown(app)
    app = open_page(lang="zh", smodel=local)
    assert "模型不认识这些字" in shown(app)
    button = next(b for b in app.button if b.label == "换成 dog bites man / man bites dog")
    button.click().run()
    assert app.session_state["a"] == "dog bites man" and "模型不认识这些字" not in shown(app)


# ---------------------------------------------------------------- what may not be
@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"smodel": "twin:none"},
            "none knows no positions that could be changed; choose a trained model with a position encoding",
        ),
        ({"op": "swap"}, "`op` must be one of mean, remove, freeze, shuffle, shift, scale, got swap"),
        ({"op": "shift.x"}, "`op shift` must be a whole number from 0 to 1000000, got 'x'"),
        ({"op": "shift.1000001"}, "`op shift` must be a whole number from 0 to 1000000, got 1000001"),
        ({"stage": "x"}, "`stage` must be one of before, after, change, got x"),
        (
            {"smodel": "twin:learned", "op": "shift.400"},
            "position 403 lies beyond a learned table of 160 rows; allowed are 0 to 159",
        ),
        ({"a": ""}, "Sentence A is empty: type a word, or choose one of the examples."),
        ({"a": "春" * 200}, "the twins take up to 159 characters, got 200"),
        (
            {"smodel": "local:nothing"},
            "there is no fetched model nothing; here are none: `make models` fetches them",
        ),
    ],
)
def test_bad_input_is_one_sentence(params, sentence, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("POSVIZ_MODELS", str(tmp_path))
    app = open_page(lang="en", **params)
    assert not app.exception
    assert refusals(app) == [sentence]


def test_a_link_opens_no_folder_by_itself(made_bert, monkeypatch) -> None:
    opened = []
    real = registry._open
    monkeypatch.setattr(registry, "_open", lambda key, *rest: opened.append(key) or real(key, *rest))
    app = open_page(lang="en", smodel=str(made_bert), a="dog bites man", b="man bites dog")
    assert not app.exception and opened == []
    assert "The link names a model that is not in the list" in shown(app)
    app.button(key="agree_model").click().run()
    assert not app.exception
    assert opened[:1] == [str(made_bert)] and "1.0000 intact: 0." in shown(app)


def test_a_typed_folder_is_opened(made_bert) -> None:
    app = open_page(lang="en", a="dog bites man", b="man bites dog")
    app.text_input(key="w_other_model").set_value(str(made_bert))
    next(button for button in app.button if button.label == "open it").click().run()
    assert not app.exception and app.session_state["smodel"] == str(made_bert)
    assert f"pretrained · {made_bert.name} · BERT" in shown(app) and "1.0000 intact: 0." in shown(app)
    app.text_input(key="w_other_model").set_value("/nowhere/at all")
    next(button for button in app.button if button.label == "open it").click().run()
    assert refusals(app) == ["/nowhere/at all is not a folder"]


def test_a_hub_that_does_not_answer_is_asked_once_a_run(monkeypatch) -> None:
    from posviz.models.pretrained import hub
    from posviz.types import Text

    asked = []

    def silent(name, limits):
        asked.append(name)
        raise hub.Refusal(Text("no {name}", "没有 {name}"), name=name)

    monkeypatch.setattr(hub, "fetch", silent)
    app = open_page(lang="en", smodel="owner/name")
    app.button(key="agree_model").click().run()
    assert refusals(app) == ["no owner/name"] and asked == ["owner/name"]
    app.run()
    assert refusals(app) == ["no owner/name"] and len(asked) == 2  # the next run tries again


def test_without_the_extra_the_page_works_and_says_the_command(monkeypatch) -> None:
    monkeypatch.setattr(pretrained, "installed", lambda: False)
    app = open_page(lang="en")
    assert not app.exception and refusals(app) == []
    assert "Real models need more packages: make models" in shown(app)
    assert not any(box.key == "w_other_model" for box in app.text_input)


def test_a_server_offers_no_box_for_folders(monkeypatch) -> None:
    monkeypatch.setenv("POSVIZ_HOSTED", "1")
    app = open_page(lang="en")
    assert not any(box.key == "w_other_model" for box in app.text_input)
    assert "This server offers the models of its list only." in shown(app)
