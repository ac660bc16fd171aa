"""What is computed for long says how far it is, and is kept no longer than it is true."""

import gc

import pytest
from safetensors.torch import load_file, save_file

from posviz import models
from posviz.models import registry, surgery
from posviz.types import Text
from posviz.ui import cached, waiting
from posviz.ui.scenes import studio


@pytest.fixture
def model(made, monkeypatch):
    monkeypatch.setattr(registry, "_opened", type(registry._opened)())
    return models.open_model(str(made("bert")))


def test_a_real_model_says_how_far_it_is(model) -> None:
    heard = []
    with cached.telling(lambda share, text: heard.append((share, text("en")))):
        cached.model_trace(model, "x", "the dog bites the man")
        cached.model_trace(model, "x", "the dog bites the man")  # known by now: nothing to tell
    assert heard == [(0.5, "layer 1 of 2"), (1.0, "layer 2 of 2")]
    heard.clear()
    with cached.telling(lambda share, text: heard.append(text("zh"))):
        cached.outcome(model, "x", "the dog bites the man", "the man bites the dog", surgery.Operation("mean"))
    assert heard == ["第 1 层，共 2 层", "第 2 层，共 2 层"] * 3  # B as it is, then both with the mean row
    cached.model_trace(model, "x", "the man")  # nobody listens any more
    assert len(heard) == 6


def test_the_bar_comes_only_where_it_takes_time(monkeypatch) -> None:
    drawn = []

    class Place:
        def progress(self, share: float, text: str) -> None:
            drawn.append((share, text))

        def empty(self) -> None:
            drawn.append("gone")

    monkeypatch.setattr(waiting.st, "empty", Place)
    with waiting.shown() as progress:
        progress(0.5, Text("half", "一半"))
    assert drawn == ["gone"]
    monkeypatch.setattr(waiting, "PATIENCE", -1.0)
    with pytest.raises(RuntimeError), waiting.shown("A · ") as progress:
        progress(0.5, Text("half", "一半"))
        raise RuntimeError
    assert drawn == ["gone", (0.5, "A · half"), "gone"]


def test_a_folder_that_has_changed_is_surveyed_again(made, tmp_path, monkeypatch) -> None:
    """Opened anew it is another model, though its name is the same; and no survey keeps a model in memory."""
    monkeypatch.setattr(registry, "_opened", type(registry._opened)())
    folder = tmp_path / "mine"
    folder.mkdir()
    for file in made("bert").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    weights = folder / "model.safetensors"

    def scene() -> studio.Scene:
        opened = models.open_model(str(folder))
        a, b = (opened.trace(opened.tokenize(s)) for s in ("the dog bites the man", "the man bites the dog"))
        return studio.Scene(opened, str(folder), a, b, "grid", "shown")

    first = scene()
    before = first.survey
    assert scene().survey is before
    registry._opened.clear()
    save_file({name: value * 2 for name, value in load_file(weights).items()}, weights, {"format": "pt"})
    second = scene()
    assert second.survey is not before and (second.survey.scores["same"] != before.scores["same"]).all()
    key = first.key[0]
    assert key() is first.model
    del first
    gc.collect()
    assert key() is None
