"""Operations on the positions of trained models: twins, and pretrained ones of every family."""

import numpy as np
import pytest
import torch

from posviz.models import pretrained, surgery
from posviz.models.twins import corpus, store
from posviz.models.twins.model import SPECS, Config, Twin
from posviz.models.untrained import Untrained
from posviz.types import LANGUAGES, Refusal

SMALL = Config(d_model=16, n_heads=2, n_layers=2, max_len=64)
OPERATED = [name for name in SPECS if name != "none"]
A, B = "我爱你，春天来", "你爱我，春天来"


def twin(name: str) -> store.Trained:
    return store.Trained(name, Twin(name, seed=1, config=SMALL).eval(), {})


def close(a, b, atol=1e-5) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("name", OPERATED)
def test_every_change_of_every_twin(name) -> None:
    model = twin(name)
    tokens = model.tokenize(A)
    for change in surgery.changes_for(model):
        operation = surgery.Operation(change, 9 if surgery.CHANGES[change].amount else None)
        trace, losses = surgery.trace(model, tokens, operation), surgery.losses(model, tokens, operation)
        for layer in trace.layers:
            close(layer.weights.sum(-1), np.ones(layer.weights.shape[:2]))
            close(sum(layer.parts.values()), layer.scores, 2e-4)
        assert losses.shape == (len(tokens) - 1,) and np.isfinite(losses).all()
        # the trace and the losses are of the same operated model
        moved = surgery._moved(model, operation.positions(len(tokens))).model
        with torch.no_grad():
            logits = moved.norm(torch.tensor(trace.hidden[-1])) @ moved.tokens.T
        want = -logits.double().log_softmax(-1)[:-1].gather(-1, torch.tensor(tokens.ids[1:])[:, None])[:, 0]
        close(losses, want.numpy(), 1e-4)


@pytest.mark.parametrize("name", OPERATED)
def test_an_operation_leaves_the_model_as_it_was(name) -> None:
    model = twin(name)
    tokens = model.tokenize(A)
    before, weights = model.trace(tokens), {k: v.clone() for k, v in model.model.state_dict().items()}
    for change in surgery.changes_for(model):
        surgery.operate(model, tokens, model.tokenize(B), surgery.Operation(change, 3))
    after = model.trace(tokens)
    assert all(torch.equal(v, weights[k]) for k, v in model.model.state_dict().items())
    np.testing.assert_array_equal(before.hidden, after.hidden)


@pytest.mark.parametrize("name", OPERATED)
def test_shifts(name) -> None:
    """Rotation and bias know distances only, so a shift changes nothing; tables notice it."""
    model = twin(name)
    tokens = model.tokenize(A)
    outcome = surgery.operate(model, tokens, model.tokenize(B), surgery.Operation("shift", 20))
    if surgery.kind_of(model) == "absolute":
        assert outcome.changes.max() > 0.01
    else:
        assert outcome.changes.max() < 1e-4
        assert outcome.loss[0] == pytest.approx(outcome.loss[1], abs=1e-4)


def test_a_bias_taken_away_is_no_bias() -> None:
    for name in ("alibi", "t5", "shaw"):
        model = twin(name)
        layer = surgery.trace(model, model.tokenize(A), surgery.Operation("remove")).layers[0]
        assert not layer.bias.any()
        close(layer.scores, layer.parts["content"], 0)


def test_rotation_to_one_place_turns_all_alike() -> None:
    model = twin("rope")
    layer = surgery.trace(model, model.tokenize(A), surgery.Operation("freeze", 7)).layers[0]
    close(layer.scores, layer.scale * layer.q @ np.swapaxes(layer.k, 1, 2), 1e-4)


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_the_mean_row_is_the_same_everywhere(name) -> None:
    model = twin(name)
    tokens = model.tokenize("爱爱爱爱爱")  # the same character, the same vector: only a position could tell them apart
    hidden = surgery.trace(model, tokens, surgery.Operation("mean")).hidden
    close(hidden[0][1:], np.broadcast_to(hidden[0][1], hidden[0][1:].shape))
    intact = model.trace(tokens).hidden[0][1:]
    assert np.abs(intact - intact[0]).max() > 1e-3
    table = model.model.position.embed(torch.zeros(corpus.TRAINED_LEN - 1, SMALL.d_model)).detach()
    row = hidden[0][1] - model.model.embedded(torch.tensor(tokens.ids))[1].detach().numpy()
    close(row, table[1:].mean(0).numpy(), 1e-5)


def test_shuffling_is_a_permutation_that_the_seed_decides() -> None:
    one, again, other = (surgery.Operation("shuffle", seed).positions(30).ids for seed in (1, 1, 2))
    assert one == again != other
    assert sorted(one) == list(range(30))


def test_what_the_words_are_told() -> None:
    told = {name: surgery.Operation(name, 3).positions(4) for name in surgery.CHANGES}
    assert told["freeze"].ids == (3, 3, 3, 3)
    assert told["shift"].ids == (3, 4, 5, 6)
    assert told["scale"].ids == (0, 3, 6, 9)
    assert told["mean"].mean and told["mean"].ids is None
    assert not told["remove"].bias


# ---------------------------------------------------------------- pretrained models
@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "t5", "llama", "qwen2", "qwen3"])
def test_every_change_of_every_family(made, name) -> None:
    model = pretrained.load(made(name))
    a, b = (model.tokenize(text) for text in ("the dog", "dog the"))
    for change in surgery.changes_for(model):
        outcome = surgery.operate(model, a, b, surgery.Operation(change, 3))
        assert outcome.changes.shape == (2, model.n_layers, model.n_heads)
        assert all(-1.0001 <= value <= 1.0001 for value in outcome.alike)
        assert (outcome.loss is None) == (name in ("bert", "roberta"))


def test_without_positions_an_encoder_reads_a_bag_of_words(made) -> None:
    model = pretrained.load(made("bert"))
    a, b = (model.tokenize(text) for text in ("the dog bites the man", "the man bites the dog"))
    assert sorted(a.ids) == sorted(b.ids)
    outcome = surgery.operate(model, a, b, surgery.Operation("mean"))
    assert outcome.alike[0] < 0.9999
    assert outcome.alike[1] == pytest.approx(1.0, abs=1e-6)
    close(outcome.after[0].pooled, outcome.after[1].pooled)


def test_a_t5_without_bias_is_a_bag_of_words_too(made) -> None:
    model = pretrained.load(made("t5"))
    a, b = (model.tokenize(text) for text in ("the dog bites the man", "the man bites the dog"))
    outcome = surgery.operate(model, a, b, surgery.Operation("remove"))
    assert outcome.alike[0] < 0.9999 and outcome.alike[1] == pytest.approx(1.0, abs=1e-5)


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: surgery.Operation("swap"),
            "`change` must be one of mean, remove, freeze, shuffle, shift, scale, got swap",
        ),
        (
            lambda: surgery.Operation("shift", -1),
            "`amount` must be a whole number from 0 to 1000000, got -1",
        ),
        (
            lambda: surgery.trace(twin("rope"), twin("rope").tokenize("我"), surgery.Operation("mean")),
            "mean row is nothing that can be done to rope; possible are frozen, shuffled, shifted, stretched",
        ),
        (
            lambda: surgery.trace(twin("learned"), twin("learned").tokenize("我"), surgery.Operation("shift", 100)),
            "position 101 lies beyond a learned table of 64 rows; allowed are 0 to 63",
        ),
        (
            lambda: surgery.changes_for(twin("none")),
            "none knows no positions that could be changed; choose a trained model with a position encoding",
        ),
        (
            lambda: surgery.changes_for(Untrained()),
            "untrained knows no positions that could be changed; choose a trained model with a position encoding",
        ),
    ],
)
def test_refusals(make, sentence) -> None:
    with pytest.raises(Refusal) as refusal:
        make()
    assert str(refusal.value) == sentence
    assert refusal.value.text("zh") != sentence


def test_a_model_that_does_not_predict_has_no_losses() -> None:
    model = Untrained()
    assert surgery.losses(model, model.tokenize("我爱你")) is None


def test_changes_are_described_in_both_languages() -> None:
    for change in surgery.CHANGES.values():
        for text in (change.title, change.says, *([change.amount] if change.amount else [])):
            assert all(text(lang) for lang in LANGUAGES) and text.en != text.zh


def test_the_shipped_twins_lose_something() -> None:
    """The default of the page: a trained twin without its positions guesses the next character worse."""
    model = store.load("sinusoidal")
    a, b = model.tokenize("春眠不觉晓，处处闻啼鸟。"), model.tokenize("夜来风雨声，花落知多少。")
    outcome = surgery.operate(model, a, b, surgery.Operation("mean"))
    assert outcome.loss[1] > outcome.loss[0] + 0.2


def test_a_word_is_not_sent_beyond_the_table(made) -> None:
    model = pretrained.load(made("bert"))
    tokens = model.tokenize("the dog bites the man")
    last = model.position.rows - 1
    with pytest.raises(Refusal) as refusal:
        surgery.trace(model, tokens, surgery.Operation("shift", last))
    assert str(refusal.value) == (
        f"“shifted” {last} puts a word at position {last + len(tokens) - 1}, but the table of {model.name} ends at {last}"
    )
