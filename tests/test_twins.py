"""The twins: data, model, training, shipped weights, sampling, and what was measured on them."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch.nn import functional

from posviz import attention
from posviz.models.twins import __main__ as command
from posviz.models.twins import corpus, measure, sample, store, train
from posviz.models.twins.model import SPECS, Config, Twin, losses
from posviz.types import Refusal

SMALL = Config(d_model=16, n_heads=2, n_layers=2, max_len=64)
SHIPPED = store.available()


def ids(text: str = "我爱你，你爱我。", form: str = "song") -> torch.Tensor:
    return torch.tensor([corpus.encode(text, form)])


# ---------------------------------------------------------------- data
def test_vocabulary_is_what_the_training_texts_give() -> None:
    assert corpus.vocabulary() == corpus.count_vocabulary()
    assert len(set(corpus.vocabulary())) == len(corpus.vocabulary())
    assert set("我爱你他的们喜欢狗咬人猫鱼") <= set(corpus.vocabulary())


def test_no_held_out_poem_is_trained_on() -> None:
    trained = {text[:6] for form in corpus.FORMS for text in corpus.poems("train", form)}
    for form in ("quatrain", "verse2", "verse4"):
        held = corpus.poems("held_out", form)
        assert len(held) >= 400
        assert not trained & {text[:6] for text in held}


def test_a_form_that_there_is_not_is_refused() -> None:
    for call in (
        lambda: store.load("rope").tokenize("春", form="haiku"),
        lambda: list(sample.write(store.load("rope").model, "春", form="haiku")),
        lambda: sample.write_many(store.load("rope").model, 1, form="haiku"),
    ):
        with pytest.raises(Refusal) as refused:
            call()
        assert str(refused.value) == "`form` must be one of quatrain, verse, song, got haiku"
        assert refused.value.text("zh") == "`form` 只能是 quatrain, verse, song 之一，现在是 haiku"


def test_forms_are_what_they_are_called() -> None:
    assert all(map(sample.well_formed, corpus.poems("train", "quatrain")))
    for form, count in (("verse2", 8), ("verse4", 16)):
        for text in corpus.poems("held_out", form):
            lines = sample.lines(text)
            assert len(lines) == count and len({len(words) for words, _ in lines}) == 1
    assert all(len(text) <= 33 for text in corpus.poems("train", "verse"))


def test_unknown_characters_keep_their_place() -> None:
    got = corpus.encode("我龘你")
    assert len(got) == 4
    assert got[2] == corpus.index()[corpus.UNKNOWN]


def test_batches_are_the_same_for_all_and_meet_every_row_once() -> None:
    first, again = corpus.batches(3, 1000), corpus.batches(3, 1000)
    for _ in range(3):
        assert torch.equal(next(first), next(again))
    one, other = corpus.batches(3, 44_000), corpus.batches(4, 44_000)
    assert not torch.equal(next(one), next(other))
    a, b = next(corpus.batches(3, 44_000)), next(one)
    whole = torch.cat([a, b])
    assert torch.equal(whole.unique(dim=0), corpus.training_rows().unique(dim=0))


# ---------------------------------------------------------------- model
def test_twins_differ_in_nothing_but_the_encoding() -> None:
    twins = {name: Twin(name, seed=5, config=SMALL) for name in SPECS}
    shared = {key: value for key, value in twins["none"].named_parameters()}
    assert not any(key.startswith("position") for key in shared)
    for name, twin in twins.items():
        own = {key: value for key, value in twin.named_parameters() if not key.startswith("position")}
        assert own.keys() == shared.keys()
        for key, value in own.items():
            # T5 does not scale its scores, so its queries start smaller by that factor
            factor = SMALL.dims.d_head**-0.5 if name == "t5" and key.endswith("w_q") else 1.0
            torch.testing.assert_close(value, shared[key] * factor, rtol=1e-6, atol=0, msg=f"{name} {key}")
        assert bool(list(twin.position.parameters())) == twin.spec.capabilities.trainable


@pytest.mark.parametrize("name", SPECS)
def test_the_fast_layer_is_the_explained_one(name: str) -> None:
    """``mix`` (scaled_dot_product_attention) gives the numbers of ``trace``."""
    spec = SPECS[name]()
    dims, length = SMALL.dims, 9
    module = spec.build(dims, 64, torch.Generator().manual_seed(1)).double()
    weights = attention.Projections(*(w.double() for w in attention.untrained_projections(dims.d_model, 2)))
    x = torch.randn(length, dims.d_model, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    tokens = store.Trained(name, Twin(name, config=SMALL), {}).tokenize("我爱你你爱我春天")
    with torch.no_grad():
        hidden = module.embed(x)
        want = attention.trace(tokens, x, module, weights, seed=0, mask="causal").output
        got, past = attention.mix(hidden, module, weights)
        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=1e-12)
        both, _ = attention.mix(torch.stack([hidden, hidden.flip(0)]), module, weights)
        np.testing.assert_allclose(both[0].numpy(), want, rtol=0, atol=1e-12)
        # in two pieces, the second with the keys and values of the first
        start, past = attention.mix(hidden[:5], module, weights)
        rest, past = attention.mix(hidden[5:], module, weights, positions=torch.arange(5, length), past=past)
        np.testing.assert_allclose(torch.cat([start, rest]).numpy(), want, rtol=0, atol=1e-12)
        assert past.k.shape == (dims.n_heads, length, dims.d_head)
        if not spec.needs_causal_mask:
            full, _ = attention.mix(hidden, module, weights, mask="none")
            want = attention.trace(tokens, x, module, weights, seed=0, mask="none").output
            np.testing.assert_allclose(full.numpy(), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SPECS)
def test_trace_adds_up_to_the_model(name: str) -> None:
    model = Twin(name, seed=1, config=SMALL).eval()
    twin = store.Trained(name, model, {})
    tokens = twin.tokenize("我爱你，你爱我。")
    trace = twin.trace(tokens)
    assert trace.hidden.shape == (SMALL.n_layers + 1, len(tokens), SMALL.d_model)
    with torch.no_grad():
        logits, _ = model(torch.tensor([tokens.ids]))
        last = model.norm(torch.tensor(trace.hidden[-1])) @ model.tokens.T
    torch.testing.assert_close(last, logits[0], rtol=1e-4, atol=1e-4)
    for i, layer in enumerate(trace.layers):
        np.testing.assert_allclose(sum(layer.parts.values()), layer.scores, rtol=0, atol=2e-4)
        split = layer.spec.kind == "additive" and i == 0  # behind it, content and position are mixed
        assert len(layer.parts) == (4 if split else {"none": 1, "additive": 1, "rotary": 2, "bias": 2}[layer.spec.kind])
        assert (layer.weights[:, ~layer.allowed] == 0).all()
    # the split of a normalised sum is exact
    first = trace.layers[0]
    with torch.no_grad():
        normed = model.blocks[0].norm_1(torch.tensor(trace.hidden[0]))
    np.testing.assert_allclose(first.embedding + first.position, normed.numpy(), rtol=0, atol=2e-6)
    assert bool(first.position.any()) == (first.spec.kind == "additive")


def test_losses_are_cross_entropies_without_the_padding() -> None:
    model = Twin("rope", config=SMALL)
    row = corpus.padded([corpus.encode("春眠不觉晓，", "verse")], 12)
    with torch.no_grad():
        got = losses(model, row)[0]
        logits, _ = model(row[:, :-1])
    for i in range(11):
        want = 0.0 if row[0, i + 1] == 0 else float(functional.cross_entropy(logits[0, i], row[0, i + 1]))
        assert float(got[i]) == pytest.approx(want, abs=1e-5)


# ---------------------------------------------------------------- training
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> train.Recipe:
    monkeypatch.setattr(train, "Twin", lambda name, seed: Twin(name, seed=seed, config=SMALL))
    return train.Recipe(steps=4, batch=8, warm_up=2)


def test_training_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    recipe = small_recipe(monkeypatch)
    said: list[str] = []
    whole = train.train("t5", recipe=recipe, folder=tmp_path / "whole", threads=1, log=said.append)
    state = train.train("t5", recipe=recipe, folder=tmp_path / "parts", threads=1, log=said.append, stop_after=2)
    assert state.name == "t5-0.state.json"
    assert not (tmp_path / "parts/t5-0.json").exists()
    parts = train.train("t5", recipe=recipe, folder=tmp_path / "parts", threads=1, log=said.append)
    one, other = (json.loads(path.read_text("utf-8")) for path in (whole, parts))
    assert one["first_losses"] == other["first_losses"] and len(one["first_losses"]) == 4
    assert one["held_out_loss"] == other["held_out_loss"]
    assert one["first_losses"][-1] < one["first_losses"][0]
    assert one["trained_steps"] == 4 and one["seed"] == 0 and one["call"].startswith("encodings.make(")
    assert said[0].startswith("t5 seed 0: step 4/4, loss ")
    with pytest.raises(SystemExit, match="another recipe"):
        train.train(
            "t5", recipe=dataclasses.replace(recipe, rate=1.0), folder=tmp_path / "parts", threads=1, log=said.append
        )


def test_rate_warms_up_and_falls_to_nothing() -> None:
    recipe = train.Recipe(steps=1000, warm_up=100, rate=0.01)
    rates = [recipe.rate_at(i) for i in range(1000)]
    assert rates[0] == pytest.approx(0.0001) and max(rates) == pytest.approx(0.01)
    assert all(np.diff(rates[:100]) > 0) and all(np.diff(rates[100:]) < 0) and rates[-1] < 1e-6


@pytest.mark.parametrize("name", [name for name in ("rope", "t5") if name in SHIPPED])
def test_training_again_gives_the_recorded_losses(name: str) -> None:
    card = store.load(name).card
    recipe = train.Recipe(**card["recipe"])
    model = Twin(name, seed=card["seed"], config=Config(**card["config"]))
    adam, batches = train.optimizer(model, recipe), corpus.batches(card["seed"], recipe.batch)
    got = [train.step(model, adam, next(batches), recipe, i) for i in range(4)]
    np.testing.assert_allclose(got, card["first_losses"][:4], rtol=0, atol=2e-3)


# ---------------------------------------------------------------- what is shipped
def test_the_family_is_shipped() -> None:
    assert set(SHIPPED) == set(SPECS)
    assert sum(path.stat().st_size for path in store.WEIGHTS.glob("*.safetensors")) < 20_000_000


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_give_the_shipped_numbers(name: str) -> None:
    twin = store.load(name)
    assert train.held_out_loss(twin.model) == pytest.approx(twin.card["held_out_loss"], abs=1e-3)
    assert twin.card["parameters"] == sum(p.numel() for p in twin.model.parameters())
    assert twin.card["data"]["vocabulary"] == len(corpus.vocabulary())
    # clearly flattened: the last 250 steps brought less than 0.05 nats
    curve = [loss for _, loss in twin.card["held_out_curve"]]
    assert curve[-2] - curve[-1] < 0.05
    measured = store.results()["twins"][name]
    assert measured["loss"]["each"][0] == pytest.approx(twin.card["held_out_loss"], abs=1e-3)
    assert twin.card["seed"] in measured["seeds"]
    # every seed behind a spread says how it was made, and was measured again on the same poems
    for seed, card, loss in zip(measured["seeds"], measured["cards"], measured["loss"]["each"], strict=True):
        assert f"--seed {seed}" in card["command"] and card["trained_steps"] == twin.card["trained_steps"]
        assert loss == pytest.approx(card["held_out_loss"], abs=1e-3)


def test_results_say_what_they_are() -> None:
    found = store.results()
    assert found["samples"] == 1000 and set(found["twins"]) == set(SHIPPED)
    first, second, third = found["lengths"].values()
    assert (first[0], third[1]) == (1, 128) and (second[0], third[0]) == (first[1] + 1, second[1] + 1)
    assert first[1] == corpus.training_rows().shape[1] - 1  # the last position that is guessed in training
    for twin in found["twins"].values():
        for name, (low, high) in found["lengths"].items():
            if len(twin["seeds"]) > 1:  # the curve is the mean over the seeds, rounded
                assert np.mean(twin["by_position"][low - 1 : high]) == pytest.approx(
                    twin[f"loss_{name}"]["mean"], abs=2e-3
                )
        assert len(twin["by_position"]) == 128  # sixteen lines of seven and their marks
        assert len(twin["heads"]) == 12
        for role, each in twin["strongest"].items():
            assert len(each) == len(twin["seeds"]) and each[0] == max(head[role]["share"] for head in twin["heads"])
        assert 0 <= twin["well_formed"]["mean"] <= 1


@pytest.mark.parametrize("prompt", store.results()["written"], ids=lambda prompt: prompt["form"])
def test_what_the_page_begins_with_is_what_the_twins_write(prompt) -> None:
    asked = {key: value for key, value in prompt.items() if key != "texts"}
    assert asked in measure.PROMPTS and set(prompt["texts"]) == set(SHIPPED)
    for name, text in prompt["texts"].items():
        assert "".join(sample.write(store.load(name).model, **asked)) == text


def test_nothing_trained_is_nothing_measured(tmp_path, monkeypatch) -> None:
    out = tmp_path / "results.json"
    monkeypatch.setattr("sys.argv", ["twins", "measure", "--folder", str(tmp_path), "--out", str(out)])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert str(caught.value) == (f"no trained twin is in {tmp_path}: `python -m posviz.models.twins train` makes them")
    assert not out.exists()


def test_heads_measured_again() -> None:
    again = measure.heads(store.load("rope").model, 5)
    recorded = store.results()["twins"]["rope"]["heads"]
    for one, other in zip(again, recorded, strict=True):
        for role in measure.ROLES:
            assert abs(one[role]["share"] - other[role]["share"]) < 0.25, (one["layer"], one["head"], role)


def refusal(call) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value


def test_what_is_not_trained_is_refused(tmp_path, monkeypatch) -> None:
    recipe = small_recipe(monkeypatch)
    train.train("none", recipe=recipe, folder=tmp_path, threads=1, log=lambda line: None)
    card = json.loads((tmp_path / "none-0.json").read_text("utf-8"))
    (tmp_path / "none-0.json").write_text(json.dumps(card | {"trained_steps": 0}), "utf-8")
    assert str(refusal(lambda: store.load("none", 0, tmp_path))) == "twin none cannot be called trained: 0 of 4 steps"
    assert str(refusal(lambda: store.load("rope", 7, tmp_path))) == (
        "there is no trained twin rope with seed 7; trained are none"
    )
    assert refusal(lambda: store.load("rope", 7, tmp_path)).text("zh") == (
        "没有训练好的孪生模型 rope（种子 7）；训练好的有 none"
    )
    assert str(refusal(lambda: store.load("fourier"))) == (
        "a twin must be one of none, sinusoidal, learned, rope, alibi, t5, shaw, got fourier"
    )


def test_tokens_of_a_twin() -> None:
    twin = store.load("rope")
    tokens = twin.tokenize("我龘<b>")
    assert tokens.pieces == ("▸", "我", "⟨龘⟩", "⟨<⟩", "⟨b⟩", "⟨>⟩")
    assert twin.unknown("我龘龘b") == "龘b"
    assert str(refusal(lambda: twin.tokenize(""))) == "the sentence is empty; type at least one character"
    assert str(refusal(lambda: twin.tokenize("我" * 160))) == "the twins take up to 159 characters, got 160"
    assert len(twin.trace(twin.tokenize("我" * 159)).tokens) == 160


@pytest.mark.parametrize("name", SHIPPED)
def test_probabilities_of_a_sentence(name: str) -> None:
    twin = store.load(name)
    got = twin.log_probabilities(twin.tokenize("春眠不觉晓，处处闻啼鸟。"))
    assert got.shape == (13,) and bool((got < 0).all())
    row = torch.tensor([[*corpus.encode("春眠不觉晓，处处闻啼鸟。"), corpus.index()[corpus.END]]])
    with torch.no_grad():
        np.testing.assert_allclose(-got.numpy(), losses(twin.model, row)[0].numpy(), rtol=0, atol=1e-4)


# ---------------------------------------------------------------- writing
@pytest.mark.parametrize("name", SHIPPED)
def test_writing_is_decided_by_the_dice(name: str) -> None:
    model = store.load(name).model
    text = "".join(sample.write(model, "春", seed=3))
    assert text == "".join(sample.write(model, "春", seed=3))
    assert text != "".join(sample.write(model, "春", seed=4))
    assert not set(corpus.SPECIAL) & set(text)
    assert len("".join(sample.write(model, "春", form="verse", seed=3, limit=11))) <= 11
    # with the cache as without: the greedy continuation of the whole text again and again
    cold = "".join(sample.write(model, "明月", temperature=0.0, limit=12))
    whole = corpus.encode("明月", "quatrain")
    with torch.no_grad():
        for piece in cold:
            logits, _ = model(torch.tensor([whole]))
            p = sample.probabilities(logits[0, -1:], 0.0)
            assert corpus.vocabulary()[int(p.argmax())] == piece
            whole.append(corpus.index()[piece])


def test_many_at_once_are_as_one_by_one() -> None:
    model = store.load("rope").model
    many = sample.write_many(model, 3, seed=11, temperature=1.0)
    single = ["".join(sample.write(model, "", seed=11 + i, temperature=1.0, limit=42)) for i in range(3)]
    assert many == single


@settings(max_examples=50, deadline=None)
@given(some.integers(0, 2**31 - 1), some.floats(0.05, 4))
def test_dice_hit_pieces_as_often_as_they_are_probable(seed: int, temperature: float) -> None:
    logits = torch.randn(1, len(corpus.vocabulary()), generator=torch.Generator().manual_seed(seed))
    p = sample.probabilities(logits, temperature)
    assert float(p.sum()) == pytest.approx(1, abs=1e-9)
    assert float(p[0, list(sample._NEVER)].max()) == 0
    # the lowest throw is the likeliest piece, and no throw leaves the range
    assert int(sample.draw(p, torch.tensor([0.0], dtype=torch.float64))) == int(p.argmax())
    assert 0 <= int(sample.draw(p, torch.tensor([1 - 1e-12], dtype=torch.float64))) < p.shape[1]


def test_draw_follows_the_distribution() -> None:
    p = torch.tensor([[0.1, 0.6, 0.3]], dtype=torch.float64)
    dice = torch.linspace(0, 1, 10_001, dtype=torch.float64)[:-1]
    drawn = sample.draw(p.expand(10_000, 3), dice)
    assert [round(float((drawn == i).double().mean()), 3) for i in range(3)] == [0.1, 0.6, 0.3]


@pytest.mark.parametrize(
    ("text", "good", "wrong"),
    [
        ("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。", True, []),
        ("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多。", False, [3]),
        ("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少", False, []),
        ("春眠不觉，处处闻啼鸟。夜来风雨声，花落知多少。", False, [0, 1, 2, 3]),
        ("春眠不觉晓，处处闻啼鸟。", False, []),
        ("", False, []),
        ("，。", False, []),
    ],
)
def test_well_formed(text: str, good: bool, wrong: list[int]) -> None:
    assert sample.well_formed(text) is good
    assert sample.malformed_lines(text) == wrong


def test_roles_of_heads_by_hand() -> None:
    wanted = dict(measure._wanted("春眠不觉晓，处处闻啼鸟。", 13))
    cells = {role: {(int(i), int(j)) for i, j in np.argwhere(where)} for role, where in wanted.items()}
    assert (1, 0) in cells["previous"] and (2, 0) not in cells["previous"]
    assert (7, 1) in cells["column"] and (11, 5) in cells["column"] and (12, 6) not in cells["column"]
    assert cells["rhyme"] == {(11, 5)}
    assert (6, 6) in cells["marks"] and (7, 6) in cells["marks"] and (5, 6) not in cells["marks"]
    # the start has no choice: it can only look at itself
    assert cells["first"] == {(i, 0) for i in range(1, 13)} and cells["self"] == {(i, i) for i in range(1, 13)}


def test_unknown_characters_that_nobody_sees_are_shown_as_their_code() -> None:
    pieces = store.load("rope").tokenize("春\u200d x").pieces
    assert pieces == ("▸", "春", "⟨200D⟩", "⟨ ⟩", "⟨x⟩")
