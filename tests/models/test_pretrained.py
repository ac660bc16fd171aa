"""Pretrained models: our trace beside the model's own attention, positions, pieces, operations."""

import numpy as np
import pytest
import torch

from posviz import encodings
from posviz.models import pretrained
from posviz.models.base import Positions
from posviz.types import Refusal

NAMES = ("bert", "roberta", "gpt2", "t5", "llama", "qwen2", "qwen3")
ABSOLUTE, ROTARY = ("bert", "roberta", "gpt2"), ("llama", "qwen2", "qwen3")
SENTENCE = "the dog bites the man and a mouse"


@pytest.fixture(scope="module")
def model(made):
    kept = {}

    def get(name: str) -> pretrained.Pretrained:
        if name not in kept:
            kept[name] = pretrained.load(made(name))
        return kept[name]

    return get


def own(model, tokens, positions=None):
    """Attentions and hidden states as transformers returns them."""
    positions = positions or Positions()
    with torch.no_grad(), model._operated(len(tokens), positions):
        return model.network(**model._inputs(tokens, positions), output_attentions=True, output_hidden_states=True)


def close(got, want, atol=1e-5):
    np.testing.assert_allclose(got, np.asarray(want), rtol=0, atol=atol)


def check(layer, theirs) -> None:
    """One layer: weights as the model's, and every other array as the docstring says."""
    close(layer.weights, theirs)
    assert layer.weights.dtype == np.float32 and not layer.weights.flags.writeable
    close(layer.weights.sum(-1), np.ones(layer.weights.shape[:2]))
    assert (layer.weights[:, ~layer.allowed] == 0).all()
    close(layer.scale * layer.q_rotated @ np.swapaxes(layer.k_rotated, 1, 2) + layer.bias, layer.scores, 1e-4)
    close(sum(layer.parts.values()), layer.scores, 1e-4)
    close(layer.weights @ layer.v, layer.head_outputs)
    whole = np.einsum("hle,hed->ld", layer.head_outputs, layer.w_o) + (0 if layer.b_o is None else layer.b_o)
    close(whole, layer.output, 1e-4)
    head = layer.dims.n_heads - 1
    close(layer.head_weights(head), layer.weights[head])
    close(layer.head_scores(head), layer.scores[head])
    for name, part in layer.head_parts(head).items():
        close(part, layer.parts[name][head])


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_models_own(model, name) -> None:
    m = model(name)
    tokens = m.tokenize(SENTENCE)
    trace, want = m.trace(tokens), own(m, tokens)
    theirs = want.encoder_attentions if name == "t5" else want.attentions
    spread = max(float(a.std()) for a in theirs)
    assert spread > 0.05  # weights that are all alike would prove nothing
    assert len(trace.layers) == m.n_layers == len(theirs)
    for layer, attention in zip(trace.layers, theirs, strict=True):
        assert layer.tokens is tokens and layer.keys is tokens
        check(layer, attention[0])
    states = want.encoder_hidden_states if name == "t5" else want.hidden_states
    close(trace.hidden[:-1], torch.stack(states[:-1])[:, 0], 1e-4)
    close(trace.hidden[-1] if trace.last is None else trace.last, states[-1][0], 1e-4)


def test_decoder_and_cross_attention_of_an_encoder_decoder(model) -> None:
    m = model("t5")
    tokens = m.tokenize(SENTENCE)
    trace, want = m.trace(tokens), own(m, tokens)
    assert trace.decoder.tokens.ids == (0, *tokens.ids[:-1])
    assert trace.decoder.tokens.special[0] and len(trace.cross) == 2
    for layer, attention in zip(trace.decoder.layers, want.decoder_attentions, strict=True):
        check(layer, attention[0])
        assert layer.mask == "causal" and not layer.spec.bidirectional
    for layer, attention in zip(trace.cross, want.cross_attentions, strict=True):
        check(layer, attention[0])
        assert (layer.tokens, layer.keys) == (trace.decoder.tokens, tokens)
        assert set(layer.parts) == {"content"}


@pytest.mark.parametrize("name", NAMES)
def test_position_is_what_the_registry_calls_it(model, name) -> None:
    m = model(name)
    position, tokens = m.position, m.tokenize(SENTENCE)
    layer = m.trace(tokens).layers[0]
    assert position.key in encodings.ENCODINGS
    assert position.kind == m.family.kind
    if position.kind == "absolute":
        table = m.position_table()
        assert table.shape == (40, 24) and table.dtype == np.float32 and not table.flags.writeable
        assert position.rows == 40 == m.max_tokens
        assert position.spec.offset == (2 if name == "roberta" else 0)
        assert set(layer.parts) == {f"{q}_{k}" for q in ("content", "position") for k in ("content", "position")}
        assert np.abs(layer.position).max() > 0.1
        assert set(m.trace(tokens).layers[1].parts) == {"content"}
    elif position.kind == "rotary":
        assert set(layer.parts) == {"content", "rotation"}
        assert np.abs(layer.parts["rotation"]).max() > 0.1
        with pytest.raises(Refusal, match="has no table of positions"):
            m.position_table()
    else:
        buckets = position.spec.buckets(torch.arange(len(tokens))[None] - torch.arange(len(tokens))[:, None])
        close(m.position_table()[buckets].transpose(2, 0, 1), layer.bias, 0)
        assert layer.scale == 1.0 and position.spec.scale(6) == 1.0


def test_position_part_of_a_sum_is_linear_in_the_table(model) -> None:
    """BERT's first layer: with all positions alike, position says the same everywhere."""
    m = model("bert")
    tokens = m.tokenize(SENTENCE)
    layer = m.trace(tokens, Positions(mean=True)).layers[0]
    deviation = layer.position / layer.position[:1]
    # the same vector up to the norm's division, which depends on the word
    close(deviation, np.broadcast_to(deviation[:, :1], deviation.shape), 1e-3)


def test_grouped_heads_share_their_keys(model) -> None:
    layer = model("llama").trace(model("llama").tokenize(SENTENCE)).layers[0]
    assert (layer.dims.n_heads, layer.dims.n_kv_heads, layer.k.shape[0]) == (4, 2, 4)
    np.testing.assert_array_equal(layer.k[0], layer.k[1])
    assert np.abs(layer.k[1] - layer.k[2]).max() > 0.01
    wide = model("qwen3").trace(model("qwen3").tokenize(SENTENCE)).layers[0]
    assert wide.dims.d_head == 10 and wide.q.shape[-1] == 10


def test_sliding_window_is_in_the_mask(model) -> None:
    m = model("qwen2")
    full, sliding = (layer.allowed for layer in m.trace(m.tokenize(SENTENCE)).layers)
    assert full[7, 0] and not sliding[7, 3] and sliding[7, 4]


# ---------------------------------------------------------------- two tokens by hand
def test_two_tokens_by_hand(model) -> None:
    """GPT-2, first layer, first head, from its tensors with nothing but numpy."""
    m = model("gpt2")
    tokens = m.tokenize("the dog")
    assert len(tokens) == 2
    state = {name: value.double().numpy() for name, value in m.network.state_dict().items()}
    x = state["transformer.wte.weight"][list(tokens.ids)] + state["transformer.wpe.weight"][:2]
    norm = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    norm = norm * state["transformer.h.0.ln_1.weight"] + state["transformer.h.0.ln_1.bias"]
    qkv = norm @ state["transformer.h.0.attn.c_attn.weight"] + state["transformer.h.0.attn.c_attn.bias"]
    q, k, v = (qkv[:, at : at + 8] for at in (0, 24, 48))
    layer = m.trace(tokens).layers[0]
    score = [float(q[1] @ k[j]) / 8**0.5 for j in range(2)]
    close(layer.scores[0, 1], score)
    weight = np.exp(score) / np.exp(score).sum()
    close(layer.weights[0], [[1, 0], weight])
    close(layer.head_outputs[0, 1], weight[0] * v[0] + weight[1] * v[1])


# ---------------------------------------------------------------- operations
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "positions",
    [
        Positions(ids=(3, 1, 2, 0, *range(9, 3, -1), *range(10, 40))),
        Positions(ids=(0,) * 40),
        Positions(mean=True),
        Positions(bias=False),
    ],
    ids=["shuffled", "zero", "mean", "no bias"],
)
def test_operated_traces_are_the_models_own_too(model, name, positions) -> None:
    m = model(name)
    tokens = m.tokenize(SENTENCE)
    if positions.ids:
        positions = Positions(ids=positions.ids[: len(tokens)])
    trace, want = m.trace(tokens, positions), own(m, tokens, positions)
    theirs = want.encoder_attentions if name == "t5" else want.attentions
    for layer, attention in zip(trace.layers, theirs, strict=True):
        check(layer, attention[0])
    intact = m.trace(tokens).layers[0].weights
    change = np.abs(trace.layers[0].weights - intact).max()
    concerns = positions.ids or (positions.mean and name in ABSOLUTE) or (not positions.bias and name == "t5")
    assert change > 1e-3 if concerns else change == 0


@pytest.mark.parametrize("name", [*ROTARY, "t5"])
def test_relative_models_do_not_notice_a_shift(model, name) -> None:
    m = model(name)
    tokens = m.tokenize(SENTENCE)
    moved = m.trace(tokens, Positions(ids=tuple(range(1000, 1000 + len(tokens)))))
    for a, b in zip(m.trace(tokens).layers, moved.layers, strict=True):
        close(a.weights, b.weights, 1e-3)
    if name == "t5":
        assert np.abs(a.weights - b.weights).max() == 0


def test_absolute_models_notice_a_shift(model) -> None:
    m = model("bert")
    tokens = m.tokenize(SENTENCE)
    moved = m.trace(tokens, Positions(ids=tuple(range(9, 9 + len(tokens)))))
    assert np.abs(moved.layers[0].weights - m.trace(tokens).layers[0].weights).max() > 0.01


def test_positions_are_checked(model) -> None:
    m = model("bert")
    tokens = m.tokenize("the dog")
    with pytest.raises(Refusal) as refusal:
        m.trace(tokens, Positions(ids=(0, 1)))
    assert str(refusal.value) == f"there must be one position for each of the {len(tokens)} tokens, got 2"
    with pytest.raises(Refusal) as refusal:
        m.trace(tokens, Positions(ids=(40,) * len(tokens)))
    assert str(refusal.value) == "`position` must be a whole number from 0 to 39, got 40"


# ---------------------------------------------------------------- losses
@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "qwen3", "t5"])
def test_losses_are_cross_entropies_of_the_next_token(model, name) -> None:
    m = model(name)
    tokens = m.tokenize(SENTENCE)
    logits = own(m, tokens).logits[0]
    target = torch.tensor(tokens.ids if name == "t5" else tokens.ids[1:])
    want = -logits[: len(target)].log_softmax(-1)[torch.arange(len(target)), target]
    close(m.losses(tokens), want, 1e-4)
    close(m.trace(tokens).losses, m.losses(tokens), 0)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_encoders_have_no_next_token(model, name) -> None:
    m = model(name)
    assert not m.has_head and m.losses(m.tokenize(SENTENCE)) is None


@pytest.mark.parametrize("name", ["bert", "t5", "llama"])
def test_progress_tells_every_layer(model, name) -> None:
    m = model(name)
    seen: list[tuple[float, str]] = []
    m.trace(m.tokenize(SENTENCE), progress=lambda share, text: seen.append((share, text.en)))
    count = 4 if name == "t5" else 2
    assert seen == [(i / count, f"layer {i} of {count}") for i in range(1, count + 1)]
    m.trace(m.tokenize(SENTENCE))
    assert len(seen) == count  # no hook stays behind


def test_one_token_has_no_next_one(model) -> None:
    m = model("llama")
    tokens = m.tokenize("e")
    assert len(tokens) == 1 and m.losses(tokens) is None and len(m.trace(tokens).layers) == 2


def test_visitors_at_the_same_time_do_not_mix(model) -> None:
    from concurrent.futures import ThreadPoolExecutor

    m = model("llama")
    texts = ["the dog", "the man bites the dog", "a cat loves a mouse"] * 4
    asked = [
        (m.tokenize(text), Positions(ids=tuple(range(n, n + len(m.tokenize(text)))))) for n, text in enumerate(texts)
    ]
    want = [m.trace(*one).layers[1].weights for one in asked]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda one: m.trace(*one).layers[1].weights, asked))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
