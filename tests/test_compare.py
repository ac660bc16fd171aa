"""Two sentences side by side: which tokens belong together, and by how much they differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, compare, encodings, text
from posviz.types import Dims

DIMS = Dims(d_model=16, n_heads=2)
SHORT = st.text("我爱你他a", max_size=9).map(text.tokenize)


def pairs(a: str, b: str, unit: str = "character"):
    return compare.match(text.tokenize(a, unit), text.tokenize(b, unit))


def layers(a: str, b: str, name: str, **given):
    spec = encodings.make(name)
    return [attention.attend(text.tokenize(s), spec, DIMS, **given) for s in (a, b)]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("我爱你", "你爱我", ((0, 2), (1, 1), (2, 0))),
        ("我爱你", "我爱你", ((0, 0), (1, 1), (2, 2))),
        # repeated tokens: the nearest first, each at most once
        ("我我", "我", ((0, 0),)),
        ("我", "你我我", ((0, 1),)),
        ("我爱我", "爱我我", ((0, 1), (1, 0), (2, 2))),
        ("aab", "baa", ((0, 2), (1, 1), (2, 0))),
        ("aaaa", "aa", ((0, 0), (1, 1))),
        # different lengths
        ("我爱你", "昨天我也爱你", ((0, 2), (1, 4), (2, 5))),
        # unrelated
        ("我爱你", "猫和狗", ()),
        ("", "我", ()),
        ("", "", ()),
    ],
)
def test_matching(a, b, expected):
    assert pairs(a, b) == expected


def test_matching_whole_words():
    assert pairs("the dog bites the man", "the man bites the dog", "word") == (
        (0, 0),
        (1, 4),
        (2, 2),
        (3, 3),
        (4, 1),
    )


@given(SHORT, SHORT)
def test_matching_pairs_equal_tokens_once_and_as_many_as_possible(a, b):
    found = compare.match(a, b)
    assert list(found) == sorted(found)
    assert all(a.pieces[i] == b.pieces[j] for i, j in found)
    for side in zip(*found, strict=True):
        assert len(set(side)) == len(side)
    common = sum(min(a.pieces.count(p), b.pieces.count(p)) for p in set(a.pieces))
    assert len(found) == common
    if len(set(a.pieces)) == len(a.pieces) and len(set(b.pieces)) == len(b.pieces):
        assert sorted((j, i) for i, j in found) == list(compare.match(b, a))


def test_without_position_only_the_order_differs():
    a, b = layers("我爱你", "你爱我", "none")
    result = compare.outputs(a, b, pairs("我爱你", "你爱我"))
    assert result.per_token.shape == (3,)
    assert result.tokens == result.per_token.max()
    assert result.tokens < 1e-12
    assert result.pooled < 1e-12
    # rows and columns are matched: the attention of one is that of the other
    matched = compare.weights(a, b, pairs("我爱你", "你爱我"))
    assert matched.shape == (2, 3, 3)
    np.testing.assert_allclose(matched, 0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rope", "t5", "shaw"])
def test_with_position_they_differ(name):
    a, b = layers("我爱你", "你爱我", name)
    result = compare.outputs(a, b, pairs("我爱你", "你爱我"))
    assert result.tokens > 1e-3
    assert result.pooled > 1e-4
    assert np.abs(compare.weights(a, b, pairs("我爱你", "你爱我"))).max() > 1e-4


def test_symmetric_alibi_reads_backwards_unmoved():
    a, b = layers("我爱你", "你爱我", "alibi")
    assert compare.outputs(a, b, pairs("我爱你", "你爱我")).tokens < 1e-12
    # a reversal it cannot see; another order it can
    a, b = layers("我爱你吗", "爱我你吗", "alibi")
    assert compare.outputs(a, b, pairs("我爱你吗", "爱我你吗")).tokens > 1e-4


def test_the_numbers_are_those_of_the_matched_rows():
    a, b = layers("我爱我", "我们爱", "rope", seed=4)
    found = pairs("我爱我", "我们爱")
    assert found == ((0, 0), (1, 2))
    result = compare.outputs(a, b, found)
    expected = [
        np.abs(a.residual[0] - b.residual[0]).max(),
        np.abs(a.residual[1] - b.residual[2]).max(),
    ]
    np.testing.assert_array_equal(result.per_token, expected)
    assert result.tokens == max(expected)
    assert result.pooled == np.abs(a.residual.mean(0) - b.residual.mean(0)).max()
    difference = compare.weights(a, b, found)
    assert difference.shape == (2, 2, 2)
    for h in range(2):
        assert difference[h, 0, 1] == a.weights[h, 0, 1] - b.weights[h, 0, 2]
        assert difference[h, 1, 0] == a.weights[h, 1, 0] - b.weights[h, 2, 0]


def test_keys_of_another_sentence_are_matched_by_pairs_of_their_own():
    class Trace:
        def __init__(self, weights):
            self.weights = weights

    a, b = np.arange(12.0).reshape(1, 3, 4), 100 + np.arange(10.0).reshape(1, 2, 5)
    difference = compare.weights(Trace(a), Trace(b), [(0, 1), (2, 0)], [(1, 4), (3, 0)])
    np.testing.assert_array_equal(difference, [[[1 - 109, 3 - 105], [9 - 104, 11 - 100]]])
    assert compare.matched(a, [(0, 0), (1, 1), (2, 2)], [(j, j) for j in range(4)], 0) is a
    assert compare.weights(Trace(a), Trace(b), [(0, 1)], []).shape == (1, 1, 0)


def test_unrelated_sentences_have_nothing_to_match_but_still_vectors_to_compare():
    a, b = layers("我爱你", "猫和狗吗", "sinusoidal")
    result = compare.outputs(a, b, ())
    assert result.per_token.shape == (0,)
    assert np.isnan(result.tokens)
    assert result.pooled > 0.1
    assert compare.weights(a, b, ()).shape == (2, 0, 0)


def test_a_sentence_with_itself_differs_by_nothing():
    for name in encodings.ENCODINGS:
        a, b = layers("我爱你", "我爱你", name)
        assert compare.outputs(a, b, pairs("我爱你", "我爱你"))[1:] == (0, 0)
