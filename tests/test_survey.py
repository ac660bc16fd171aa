"""Head scores, small pictures, aggregates and contributions: by hand, by definition, by independent sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, compare, encodings, survey, text
from posviz.models.twins import store
from posviz.types import Dims, Refusal

FULL = np.ones((4, 4), bool)
CAUSAL = np.tril(FULL)


def shifted(length: int, by: int) -> np.ndarray:
    """Every query looks at the key ``by`` places on (at the end: at itself)."""
    weights = np.zeros((1, length, length))
    for i in range(length):
        j = i + by
        weights[0, i, j if 0 <= j < length else i] = 1
    return weights


def test_a_head_that_looks_one_back_is_a_previous_token_head() -> None:
    scores = survey.head_scores(shifted(4, -1), CAUSAL)
    # query 0 has no choice and does not count; queries 1 to 3 look one back, query 1 thereby at the first
    assert {name: value.tolist() for name, value in scores.items()} == {
        "previous": [1.0],
        "next": [0.0],
        "first": [1 / 3],
        "same": [0.0],
        "entropy": [0.0],
        "distance": [1.0],
    }


def test_a_head_that_looks_one_on() -> None:
    scores = survey.head_scores(shifted(4, 1), FULL)
    assert [scores[name][0] for name in ("previous", "next", "first", "same", "entropy", "distance")] == [
        0.0,
        1.0,
        0.0,
        0.25,  # the last query has no key one on
        0.0,
        0.75,
    ]


def test_even_attention_has_entropy_one_with_and_without_a_mask() -> None:
    for allowed in (FULL, CAUSAL):
        even = (allowed / allowed.sum(-1, keepdims=True))[None]
        assert survey.head_scores(even, allowed)["entropy"][0] == pytest.approx(1, abs=1e-12)


def test_one_token_has_no_scores() -> None:
    scores = survey.head_scores(np.ones((2, 1, 1)), np.ones((1, 1), bool))
    assert all(np.isnan(value).all() and value.shape == (2,) for value in scores.values())


@given(st.integers(1, 70), st.integers(1, 20), st.integers(0, 9))
def test_pooling_keeps_the_sum_of_every_query(length: int, most: int, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(length), size=(2, length))
    small = survey.pooled(weights, most)
    assert small.shape[-1] <= most and small.shape[0] == 2
    np.testing.assert_allclose(small.sum(-1), 1, atol=1e-12)


def test_pooling_does_not_fade_a_head_that_looks_at_one_key() -> None:
    small = survey.pooled(shifted(512, 0), 48)
    assert small.shape == (1, 47, 47)  # blocks of 11
    np.testing.assert_allclose(small[0], np.eye(47), atol=1e-12)


def test_change_is_none_for_the_same_and_one_for_other_words() -> None:
    one, other = shifted(3, 0), shifted(3, 1)
    pairs = [(0, 0), (1, 1), (2, 2)]
    assert survey.change(one, one, pairs).tolist() == [0.0]
    assert survey.change(one, other, pairs)[0] == pytest.approx(2 / 3)  # the last word keeps looking at itself
    assert survey.change(one, other, [(0, 0)])[0] == 1.0  # from itself to words that are not matched
    assert np.isnan(survey.change(one, other, [])).all()


def twin_layers(sentence: str):
    twin = store.load("rope")
    return twin, twin.trace(twin.tokenize(sentence)).layers


def test_a_survey_of_the_trained_twin_agrees_with_plain_sums() -> None:
    (_, a), (_, b) = twin_layers("春眠不觉晓"), twin_layers("晓觉不眠春")
    found = survey.survey(map(survey.see, a), map(survey.see, b))
    assert found.shape == (3, 4)
    assert found.pairs == compare.match(a[0].tokens, b[0].tokens)
    weights = a[2].weights
    length = weights.shape[-1]
    previous = [np.mean([weights[h, i, i - 1] for i in range(1, length)]) for h in range(4)]
    np.testing.assert_allclose(found.scores["previous"][2], previous, rtol=1e-5)
    distance = [
        np.mean([sum(weights[h, i, j] * abs(i - j) for j in range(length)) for i in range(1, length)]) for h in range(4)
    ]
    np.testing.assert_allclose(found.scores["distance"][2], distance, rtol=1e-5)
    np.testing.assert_array_equal(found.thumbs["a"][1], a[1].weights)
    assert found.thumbs["d"].shape == (3, 4, len(found.pairs), len(found.pairs))
    assert found.uniform["previous"] == pytest.approx(np.mean([1 / n for n in range(2, length + 1)]))
    assert not found.allowed["a"][0, 1] and found.allowed["a"][1, 0]


def test_without_position_no_head_changes_between_the_two_orders() -> None:
    a, b = (
        attention.attend(text.tokenize(s), encodings.make("none"), Dims(d_model=32, n_heads=4))
        for s in ("我爱你", "你爱我")
    )
    found = survey.survey([survey.see(a)], [survey.see(b)])
    np.testing.assert_allclose(found.scores["change"], 0, atol=1e-12)
    assert found.row_error < 1e-12


def test_aggregates_of_the_twin() -> None:
    _, layers = twin_layers("春眠不觉晓")
    stack = np.stack([layer.weights for layer in layers]).astype(np.float64)
    np.testing.assert_allclose(survey.aggregate(layers), stack.mean((0, 1)), atol=1e-7)
    np.testing.assert_allclose(survey.aggregate(layers, how="max", only_heads=[1, 2]), stack[:, 1:3].max((0, 1)))
    some = survey.aggregate(layers, only_layers=[2], only_heads=[0])
    np.testing.assert_allclose(some, stack[2, 0])
    rolled = survey.aggregate(layers, how="rollout")
    by_hand = np.eye(stack.shape[-1])
    for layer in stack:
        by_hand = (0.5 * layer.mean(0) + 0.5 * np.eye(len(by_hand))) @ by_hand
    np.testing.assert_allclose(rolled, by_hand, atol=1e-7)
    np.testing.assert_allclose(rolled.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("given_", "sentence"),
    [
        ({"how": "median"}, "`how` must be one of mean, max, rollout, got median"),
        ({"only_layers": []}, "choose at least one layer and one head"),
        ({"only_heads": []}, "choose at least one layer and one head"),
        ({"only_heads": [0, 99]}, "`head` must be a whole number from 0 to 3, got 99"),
        ({"only_heads": [-1]}, "`head` must be a whole number from 0 to 3, got -1"),
    ],
)
def test_aggregates_that_cannot_be(given_, sentence) -> None:
    with pytest.raises(Refusal) as refused:
        survey.aggregate(twin_layers("春")[1], **given_)
    assert str(refused.value) == sentence


def test_contributions_add_up_to_the_heads_output_where_one_key_has_it_all() -> None:
    trace = attention.attend(text.tokenize("我爱你"), encodings.make("rope"), Dims(d_model=32, n_heads=4))
    w_o = attention.untrained_projections(32, 0).w_o.double().numpy()
    found = survey.contributions(trace.weights[2, 1], trace.v[2], w_o[16:24])
    by_hand = [np.linalg.norm(trace.weights[2, 1, j] * trace.v[2, j] @ w_o[16:24]) for j in range(3)]
    np.testing.assert_allclose(found, by_hand)
    # the vectors themselves, over all heads and keys, are the layer's output
    total = sum(trace.weights[h, 1] @ trace.v[h] @ w_o[8 * h : 8 * h + 8] for h in range(4))
    np.testing.assert_allclose(total, trace.output[1], atol=1e-9)


def test_special_tokens_can_be_left_out_and_the_rest_renormalised() -> None:
    _, layers = twin_layers("春眠")
    assert layers[0].tokens.special == (True, False, False)
    shown = survey.see(layers[1])
    np.testing.assert_array_equal(shown.weights, layers[1].weights)
    hidden = survey.see(layers[1], special=False)
    assert hidden.tokens.pieces == ("春", "眠") and len(hidden.tokens.ids) == len(hidden.tokens.infos) == 2
    np.testing.assert_array_equal(hidden.weights, layers[1].weights[:, 1:, 1:])
    whole = survey.see(layers[1], special=False, renormalise=True)
    np.testing.assert_allclose(whole.weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(whole.allowed, [[True, False], [True, True]])
