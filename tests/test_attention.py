"""The layer: by hand, by the book, and nothing but position differs between encodings."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posviz import attention, encodings, text
from posviz.attention import Projections, attend, trace, untrained_embedding, untrained_projections
from posviz.types import AttentionTrace, Dims, Refusal, Tokens

DIMS = Dims(d_model=16, n_heads=4)
NAMES = list(encodings.ENCODINGS)
SENTENCE = text.tokenize("我爱你，我也爱它")
ARRAYS = [
    "embedding", "position", "hidden", "q", "k", "v", "q_rotated", "k_rotated", "bias", "scores",
    "allowed", "weights", "head_outputs", "output",
]  # fmt: skip


def refused(*args, **kwargs) -> Refusal:
    with pytest.raises(Refusal) as caught:
        attend(*args, **kwargs)
    return caught.value


def by_hand(spec: encodings.Encoding, mask: str = "none", **given) -> AttentionTrace:
    """Two tokens, x = (1, 0) and (0, 2), d_model 2, one head, small whole numbers as weights."""
    f = torch.float64
    projections = {
        "w_q": torch.tensor([[1, 1], [0, 1]], dtype=f),
        "w_k": torch.tensor([[1, 0], [1, 1]], dtype=f),
        "w_v": torch.tensor([[2, 0], [0, 1]], dtype=f),
        "w_o": torch.tensor([[0, 1], [1, 0]], dtype=f),
    } | given
    with torch.no_grad():
        return trace(
            text.tokenize("ab"),
            torch.tensor([[1, 0], [0, 2]], dtype=f),
            spec.build(Dims(d_model=2, n_heads=1), 2).double(),
            Projections(**projections),
            seed=0,
            mask=mask,
        )


def test_two_tokens_by_hand():
    layer = by_hand(encodings.make("none"))
    # y = x W: q1 = (1,0) Wq = (1,1); q2 = (0,2) Wq = 2 (0,1) = (0,2)
    np.testing.assert_array_equal(layer.q, [[[1, 1], [0, 2]]])
    # k1 = (1,0) Wk = (1,0); k2 = 2 (1,1) = (2,2)
    np.testing.assert_array_equal(layer.k, [[[1, 0], [2, 2]]])
    # v1 = (2,0); v2 = 2 (0,1) = (0,2)
    np.testing.assert_array_equal(layer.v, [[[2, 0], [0, 2]]])
    # q1.k1 = 1, q1.k2 = 2 + 2 = 4, q2.k1 = 0, q2.k2 = 4; all divided by sqrt(2)
    assert layer.scale == pytest.approx(0.7071067811865475, abs=1e-16)
    expected = [[[0.7071067811865475, 2.82842712474619], [0, 2.82842712474619]]]
    np.testing.assert_allclose(layer.scores, expected, rtol=0, atol=1e-15)
    # row 1: 1 / (1 + exp(3/sqrt 2)) = 1 / (1 + 8.342145) = 0.107041...
    # row 2: 1 / (1 + exp(4/sqrt 2)) = 1 / (1 + 16.918829) = 0.055807...
    weights = [
        [0.10704180146517042, 0.8929581985348296],
        [0.05580721920716974, 0.9441927807928303],
    ]
    np.testing.assert_allclose(layer.weights, [weights], rtol=0, atol=1e-15)
    # heads: w11 (2,0) + w12 (0,2) = (2 w11, 2 w12)
    np.testing.assert_allclose(layer.head_outputs, [2 * np.array(weights)], rtol=0, atol=1e-15)
    # Wo swaps the two columns
    np.testing.assert_allclose(layer.output, 2 * np.array(weights)[:, ::-1], rtol=0, atol=1e-15)
    # the next layer receives x + output; the sentence vector is its mean over the tokens
    np.testing.assert_allclose(layer.residual, layer.hidden + layer.output, rtol=0, atol=0)
    np.testing.assert_allclose(
        layer.pooled,
        [
            0.5 + 0.8929581985348296 + 0.9441927807928303,
            1 + 0.10704180146517042 + 0.05580721920716974,
        ],
        rtol=0,
        atol=1e-15,
    )
    np.testing.assert_array_equal(layer.bias, 0)
    np.testing.assert_array_equal(layer.position, 0)
    assert list(layer.parts) == ["content"]


def test_two_tokens_by_hand_with_the_causal_mask():
    layer = by_hand(encodings.make("none"), mask="causal")
    np.testing.assert_array_equal(layer.allowed, [[True, False], [True, True]])
    # token 1 sees itself only; token 2 as before
    expected = [[[1, 0], [0.05580721920716974, 0.9441927807928303]]]
    np.testing.assert_allclose(layer.weights, expected, rtol=0, atol=1e-15)
    # the scores are those before the mask
    np.testing.assert_allclose(layer.scores, by_hand(encodings.make("none")).scores, rtol=0, atol=0)


def test_two_tokens_by_hand_with_sinusoids():
    one = torch.eye(2, dtype=torch.float64)
    layer = by_hand(encodings.make("sinusoidal"), w_q=one, w_k=one)
    s, c = 0.8414709848078965, 0.5403023058681398  # sin 1, cos 1
    # PE(0) = (sin 0, cos 0) = (0, 1), PE(1) = (sin 1, cos 1); x = (1, 0), (0, 2)
    np.testing.assert_allclose(layer.position, [[0, 1], [s, c]], rtol=0, atol=1e-15)
    parts = {
        "content_content": [[1, 0], [0, 4]],  # x_m . x_n
        "content_position": [[0, s], [2, 2 * c]],  # x_m . p_n
        "position_content": [[0, 2], [s, 2 * c]],  # p_m . x_n
        "position_position": [[1, c], [c, 1]],  # p_m . p_n, s^2 + c^2 = 1
    }
    assert list(layer.parts) == list(parts)
    for name, part in parts.items():
        np.testing.assert_allclose(layer.parts[name], [np.array(part) / math.sqrt(2)], rtol=0, atol=1e-15)
    # (1, 1) . (s, 2 + c) / sqrt 2
    assert layer.scores[0, 0, 1] == pytest.approx((s + 2 + c) / math.sqrt(2), abs=1e-15)


def test_two_tokens_by_hand_with_rope():
    layer = by_hand(encodings.make("rope"))
    s, c = 0.8414709848078965, 0.5403023058681398
    # token 2 stands at position 1 and its one pair turns by 1 radian:
    # q2 = (0, 2) -> (-2 s, 2 c), k2 = (2, 2) -> (2 c - 2 s, 2 s + 2 c)
    np.testing.assert_allclose(layer.q_rotated, [[[1, 1], [-2 * s, 2 * c]]], rtol=0, atol=1e-15)
    np.testing.assert_allclose(layer.k_rotated, [[[1, 0], [2 * c - 2 * s, 2 * s + 2 * c]]], rtol=0, atol=1e-15)
    # q1.k2 = 4 c; q2.k1 = -2 s; on the diagonal nothing changes
    scores = np.array([[1, 4 * c], [-2 * s, 4]]) / math.sqrt(2)
    np.testing.assert_allclose(layer.scores, [scores], rtol=0, atol=1e-15)
    content = np.array([[1, 4], [0, 4]]) / math.sqrt(2)
    np.testing.assert_allclose(layer.parts["content"], [content], rtol=0, atol=1e-15)
    np.testing.assert_allclose(layer.parts["rotation"], [scores - content], rtol=0, atol=1e-15)


def test_two_tokens_by_hand_with_alibi_and_t5():
    # one head has slope 2^-8
    alibi = by_hand(encodings.make("alibi"))
    np.testing.assert_array_equal(alibi.bias, [[[0, -1 / 256], [-1 / 256, 0]]])
    np.testing.assert_allclose(alibi.scores, by_hand(encodings.make("none")).scores + alibi.bias, rtol=0, atol=1e-15)
    # T5 does not divide by sqrt(d_head)
    layer = by_hand(encodings.make("t5"))
    assert layer.scale == 1
    np.testing.assert_array_equal(layer.parts["content"], [[[1, 4], [0, 4]]])


# ---- by the book


@pytest.mark.parametrize("mask", attention.MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_read_only_arrays(name, mask):
    layer = attend(SENTENCE, encodings.make(name), DIMS, mask=mask)
    L, H, e, d = len(SENTENCE), 4, 4, 16
    shapes = {
        (L, d): ["embedding", "position", "hidden", "output", "residual"],
        (H, L, e): ["q", "k", "v", "q_rotated", "k_rotated", "head_outputs"],
        (H, L, L): ["bias", "scores", "weights"],
        (L, L): ["allowed"],
        (d,): ["pooled"],
    }
    for shape, arrays in shapes.items():
        for array in arrays:
            assert getattr(layer, array).shape == shape, array
    for array in (*(getattr(layer, name) for name in ARRAYS), *layer.parts.values()):
        assert not array.flags.writeable
        assert array.dtype in (np.float64, np.bool_)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(TypeError):
        layer.parts["mine"] = layer.scores
    assert (layer.tokens, layer.dims, layer.seed, layer.mask) == (SENTENCE, DIMS, 0, mask)
    assert layer.spec == encodings.make(name)


@pytest.mark.parametrize("mask", attention.MASKS)
@pytest.mark.parametrize("name", NAMES)
def test_rows_sum_to_one_and_parts_to_the_scores(name, mask):
    layer = attend(SENTENCE, encodings.make(name), DIMS, mask=mask)
    np.testing.assert_allclose(layer.weights.sum(-1), 1, rtol=0, atol=1e-14)
    assert (layer.weights >= 0).all()
    np.testing.assert_allclose(sum(layer.parts.values()), layer.scores, rtol=0, atol=1e-13)
    kind = encodings.ENCODINGS[name].kind
    assert list(layer.parts) == {
        "none": ["content"],
        "rotary": ["content", "rotation"],
        "bias": ["content", "bias"],
        "additive": [
            "content_content", "content_position", "position_content", "position_position",
        ],
    }[kind]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_causal_mask_hides_what_comes_later(name):
    spec = encodings.make(name)
    layer = attend(SENTENCE, spec, DIMS, mask="causal")
    later = np.triu(np.ones((len(SENTENCE),) * 2, bool), 1)
    np.testing.assert_array_equal(layer.allowed, ~later)
    np.testing.assert_array_equal(layer.weights[:, later], 0)
    np.testing.assert_array_equal(layer.weights[:, 0, 0], 1)
    assert np.isfinite(layer.scores).all(), "the mask is not in the scores"
    if spec.looks_ahead:
        return  # a convolution does, see test_family
    # nothing that comes later changes what came before
    shorter = attend(text.tokenize("我爱你，"), spec, DIMS, mask="causal")
    np.testing.assert_allclose(layer.output[:4], shorter.output, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_heads_split_and_concatenate(n_heads):
    """The layer against sums written out index by index."""
    dims = Dims(d_model=8, n_heads=n_heads)
    e = dims.d_head
    layer = attend(SENTENCE, encodings.make("none"), dims, seed=5)
    w = [m.double().numpy() for m in untrained_projections(8, 5)]
    x = layer.embedding
    L = len(SENTENCE)
    output = np.zeros((L, 8))
    for h in range(n_heads):
        columns = slice(h * e, (h + 1) * e)  # head h owns a block of columns
        q, k, v = (np.einsum("ld,de->le", x, m[:, columns]) for m in w[:3])
        np.testing.assert_allclose(layer.q[h], q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(layer.k[h], k, rtol=0, atol=1e-14)
        np.testing.assert_allclose(layer.v[h], v, rtol=0, atol=1e-14)
        scores = np.einsum("me,ne->mn", q, k) / math.sqrt(e)
        np.testing.assert_allclose(layer.scores[h], scores, rtol=0, atol=1e-13)
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        np.testing.assert_allclose(layer.weights[h], weights, rtol=0, atol=1e-13)
        # and of W_O a block of rows
        output += np.einsum("mn,ne,ed->md", weights, v, w[3][columns])
    np.testing.assert_allclose(layer.output, output, rtol=0, atol=1e-13)


# ---- only position differs


@pytest.mark.parametrize("name", NAMES)
def test_the_same_weights_whatever_the_encoding(name):
    base = attend(SENTENCE, encodings.make("none"), DIMS, seed=9)
    layer = attend(SENTENCE, encodings.make(name), DIMS, seed=9)
    np.testing.assert_array_equal(layer.embedding, base.embedding)
    w = untrained_projections(16, 9)
    for array, matrix in (("q", w.w_q), ("k", w.w_k), ("v", w.w_v)):
        merged = getattr(layer, array).swapaxes(0, 1).reshape(len(SENTENCE), 16)
        np.testing.assert_allclose(merged, layer.hidden @ matrix.double().numpy(), rtol=0, atol=1e-13)
        if encodings.ENCODINGS[name].kind != "additive":
            np.testing.assert_array_equal(getattr(layer, array), getattr(base, array))
    merged = layer.head_outputs.swapaxes(0, 1).reshape(len(SENTENCE), 16)
    np.testing.assert_allclose(layer.output, merged @ w.w_o.double().numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_layer_and_another_seed_another(name):
    spec = encodings.make(name)
    before = torch.get_rng_state()
    one, same, other = (attend(SENTENCE, spec, DIMS, seed=s) for s in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    for array in ARRAYS:
        np.testing.assert_array_equal(getattr(one, array), getattr(same, array))
    for array in ("embedding", "q", "k", "v", "output"):
        assert np.abs(getattr(one, array) - getattr(other, array)).max() > 0.1


def test_projections_and_embeddings_are_standard():
    w = untrained_projections(256, 0)
    assert len(w) == 4
    for matrix in w:
        assert matrix.shape == (256, 256)
        assert matrix.std().item() == pytest.approx(1 / 16, rel=0.02)
    for a, b in itertools.combinations(w, 2):
        assert abs(np.corrcoef(a.flatten(), b.flatten())[0, 1]) < 0.02
    many = text.tokenize("".join(map(chr, range(0x4E00, 0x4E00 + 200))))
    x = untrained_embedding(many, 256, 0)
    assert x.std().item() == pytest.approx(1, rel=0.02)
    assert np.abs(np.corrcoef(x)[np.triu_indices(200, 1)]).max() < 0.4


@pytest.mark.parametrize("name", ["learned", "t5", "shaw"])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_an_encodings_numbers_are_not_those_of_the_projections(name, seed):
    """Drawn from one stream, a learned table would begin with the very numbers of W_q."""
    dims = Dims(d_model=64, n_heads=64)
    module = encodings.make(name).build(dims, 64, torch.Generator().manual_seed(seed))
    table = module.weight.detach().flatten()
    for matrix in untrained_projections(64, seed):
        n = min(len(table), matrix.numel())
        same = np.corrcoef(table[:n], matrix.flatten()[:n])[0, 1]
        assert abs(same) < 6 / math.sqrt(n)


def test_a_piece_has_one_vector_in_every_sentence():
    a = untrained_embedding(text.tokenize("我爱你"), 32, 7)
    b = untrained_embedding(text.tokenize("谁爱我，我爱谁"), 32, 7)
    assert torch.equal(a[0], b[2]) and torch.equal(a[0], b[4])
    assert torch.equal(a[1], b[1])
    assert not torch.equal(a[0], a[1])
    word = untrained_embedding(text.tokenize("我爱你", "word"), 32, 7)
    assert torch.equal(a, word), "the same piece, however it was cut"


@given(st.permutations(range(8)), st.integers(0, 2**31 - 1))
def test_without_positions_shuffling_the_words_shuffles_the_outputs(order, seed):
    pieces = "我爱你吗？是的。"
    plain = attend(text.tokenize(pieces), encodings.make("none"), DIMS, seed=seed)
    shuffled = text.tokenize("".join(pieces[i] for i in order))
    moved = attend(shuffled, encodings.make("none"), DIMS, seed=seed)
    np.testing.assert_allclose(moved.output, plain.output[order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved.weights, plain.weights[:, order][:, :, order], rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved.pooled, plain.pooled, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_with_the_causal_mask_even_no_position_knows_the_order(name):
    forth, back = (attend(text.tokenize(s), encodings.make(name), DIMS, mask="causal") for s in ("我爱你", "你爱我"))
    assert np.abs(forth.output[[0, 1, 2]] - back.output[[2, 1, 0]]).max() > 0.01


@given(st.integers(0, 3000), st.integers(0, 2**31 - 1))
def test_rope_scores_do_not_change_when_everything_moves(shift, seed):
    spec = encodings.make("rope")
    layer = attend(SENTENCE, spec, DIMS, seed=seed)
    at = torch.arange(len(SENTENCE)) + shift
    q, k = spec.rotate(torch.tensor(layer.q), at), spec.rotate(torch.tensor(layer.k), at)
    moved = (q @ k.mT).numpy() * layer.scale
    np.testing.assert_allclose(moved, layer.scores, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_one_token_looks_at_itself(name):
    spec = encodings.make(name)
    width = spec.width_step(1)
    width += width % 2
    layer = attend(text.tokenize("我"), spec, Dims(d_model=width, n_heads=1), max_len=1)
    np.testing.assert_array_equal(layer.weights, [[[1]]])
    np.testing.assert_allclose(
        layer.output,
        layer.v[0] @ untrained_projections(width, 0).w_o.double().numpy(),
        rtol=0,
        atol=1e-14,
    )


@pytest.mark.parametrize("name", ["none", "learned", "alibi", "t5", "shaw"])
def test_one_dimension_is_enough_where_nothing_comes_in_pairs(name):
    layer = attend(SENTENCE, encodings.make(name), Dims(d_model=1, n_heads=1))
    assert layer.output.shape == (len(SENTENCE), 1)
    np.testing.assert_allclose(layer.weights.sum(-1), 1, rtol=0, atol=1e-14)


def test_64_heads():
    for name in NAMES:
        layer = attend(SENTENCE, encodings.make(name), Dims(d_model=256, n_heads=64))
        assert layer.weights.shape == (64, len(SENTENCE), len(SENTENCE))
        np.testing.assert_allclose(layer.weights.sum(-1), 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_512_tokens(name):
    tokens = text.tokenize("我爱你吗" * 128)
    layer = attend(tokens, encodings.make(name), Dims(d_model=16, n_heads=1), mask="causal")
    np.testing.assert_allclose(layer.weights.sum(-1), 1, rtol=0, atol=1e-13)


# ---- precision


@pytest.mark.parametrize(
    ("dtype", "stored", "tolerance"),
    [
        (torch.float32, np.float32, 1e-5),
        (torch.float16, np.float16, 0.05),
        (torch.bfloat16, np.float32, 0.3),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_lower_precisions_come_close_and_say_so(name, dtype, stored, tolerance):
    exact = attend(SENTENCE, encodings.make(name), DIMS)
    layer = attend(SENTENCE, encodings.make(name), DIMS, dtype=dtype)
    for array in ("embedding", "hidden", "q_rotated", "scores", "weights", "output"):
        got, reference = getattr(layer, array), getattr(exact, array)
        assert got.dtype == stored
        np.testing.assert_allclose(got.astype(float), reference, atol=tolerance, rtol=tolerance)
    assert np.abs(layer.output - exact.output).max() > 0, "it is not the same computation"


# ---- refusals


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_sentence_is_refused(name):
    error = refused(text.tokenize(""), encodings.make(name), DIMS)
    assert str(error) == "the sentence is empty; type at least one word"
    assert error.text("zh") == "句子是空的；请至少输入一个词"
    assert error.field == "text"
    assert str(refused(text.tokenize(" \n", "word"), encodings.make(name), DIMS)) == str(error)


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_longer_than_max_len_is_refused(name):
    error = refused(SENTENCE, encodings.make(name), DIMS, max_len=7)
    assert str(error) == "`max_len` must be at least the sentence's 8 tokens, got 7"
    assert error.text("zh") == "`max_len` 不能小于句子的 8 个词元，现在是 7"
    assert attend(SENTENCE, encodings.make(name), DIMS, max_len=8).output.shape == (8, 16)


@pytest.mark.parametrize("bad", [0, -1, 8193, 8.0, "8", None, math.nan, math.inf, True])
def test_max_len_is_checked_before_it_is_compared(bad):
    error = refused(SENTENCE, encodings.make("none"), DIMS, max_len=bad)
    assert str(error) == f"`max_len` must be a whole number from 1 to 8192, got {bad!r}"


@pytest.mark.parametrize("bad", [-1, 2**31, 0.0, "0", None, True])
def test_seeds_are_checked(bad):
    error = refused(SENTENCE, encodings.make("none"), DIMS, seed=bad)
    assert str(error) == f"`seed` must be a whole number from 0 to 2147483647, got {bad!r}"
    assert error.text("zh") == f"`seed` 必须是 0 到 2147483647 的整数，现在是 {bad!r}"


@pytest.mark.parametrize("bad", ["full", "", None, [], "Causal"])
def test_masks_are_checked(bad):
    error = refused(SENTENCE, encodings.make("none"), DIMS, mask=bad)
    quoted = bad if isinstance(bad, str) else repr(bad)
    assert str(error) == f"`mask` must be one of none, causal, got {quoted}"
    assert error.text("zh") == f"`mask` 只能是 none, causal 之一，现在是 {quoted}"


def test_a_mask_that_there_is_not_is_never_full_attention():
    spec = encodings.make("none")
    module = spec.build(DIMS, 8, torch.Generator().manual_seed(0))
    weights, x = untrained_projections(DIMS.d_model, 0), untrained_embedding(SENTENCE, DIMS.d_model, 0)
    for call in (
        lambda: trace(SENTENCE, x, module, weights, seed=0, mask="Causal"),
        lambda: attention.mix(x, module, weights, mask="Causal"),
    ):
        with pytest.raises(Refusal) as caught:
            call()
        assert str(caught.value) == "`mask` must be one of none, causal, got Causal"


def test_whole_numbers_of_numpy_are_whole_numbers():
    spec = encodings.make("learned")
    got = attend(SENTENCE, spec, DIMS, seed=np.int64(7), max_len=np.int32(8))
    np.testing.assert_array_equal(got.output, attend(SENTENCE, spec, DIMS, seed=7, max_len=8).output)
    assert type(got.seed) is int
    assert type(Dims(d_model=np.int64(16), n_heads=np.int64(2)).d_model) is int


def test_causal_alibi_needs_its_mask():
    error = refused(SENTENCE, encodings.make("alibi", causal=True), DIMS)
    assert str(error) == (
        "the causal form of ALiBi needs the causal mask, got mask none; "
        "set the mask to causal or turn the causal form off"
    )
    assert error.text("zh") == ("ALiBi 的因果形式需要因果掩码，现在的掩码是 none；请把掩码改成 causal，或关掉因果形式")
    both = [attend(SENTENCE, encodings.make("alibi", causal=causal), DIMS, mask="causal") for causal in (True, False)]
    np.testing.assert_allclose(both[0].weights, both[1].weights, rtol=0, atol=1e-15)


def test_sizes_an_encoding_cannot_have_are_refused_here_too():
    error = refused(SENTENCE, encodings.make("rope"), Dims(d_model=28, n_heads=4))
    assert str(error) == ("`d_head` must be even for RoPE, got 7 (d_model 28 / n_heads 4); try d_model 32")
    error = refused(SENTENCE, encodings.make("sinusoidal"), Dims(d_model=7, n_heads=1))
    assert error.text("zh") == ("正弦编码要求 `d_model` 为偶数（正弦、余弦成对出现），现在是 7；可以试试 8")


def test_tokens_of_ones_own_making():
    tokens = Tokens("x y", ("x", "y"), (1, 2))
    layer = attend(tokens, encodings.make("learned"), DIMS, max_len=2)
    assert layer.tokens is tokens
    assert np.isfinite(layer.output).all()
