"""The same numbers as other people's code, given the same weights: transformers and torch itself.

transformers works in float32 inside (angles, slopes), which is why the tolerances differ.
"""

import math

import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from torch.nn import functional
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.roformer import modeling_roformer as roformer
from transformers.models.t5 import modeling_t5 as t5

from posviz import attention, encodings, text
from posviz.types import AttentionTrace, Dims

DIMS = Dims(d_model=32, n_heads=4)
TOKENS = text.tokenize("我爱你，你也爱我吗")
LENGTH = len(TOKENS)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer(spec: encodings.Encoding, *, mask: str = "none", seed: int = 1):
    """(our trace, the projections as float64 matrices with y = x @ w)."""
    trace = attention.attend(TOKENS, spec, DIMS, seed=seed, mask=mask)
    projections = attention.untrained_projections(DIMS.d_model, seed)
    return trace, attention.Projections(*(w.double() for w in projections))


def linear(weight: torch.Tensor) -> torch.nn.Linear:
    """A torch layer for y = x @ weight; torch keeps the transpose."""
    module = torch.nn.Linear(*weight.shape, bias=False, dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(weight.T)
    return module


def causal_mask() -> torch.Tensor:
    """(1, 1, L, L): 0 where a query may look, -inf elsewhere."""
    return torch.full((LENGTH, LENGTH), -math.inf, dtype=torch.float64).triu(1)[None, None]


def compare(trace: AttentionTrace, output, weights, tolerance: float) -> None:
    np.testing.assert_allclose(trace.output, output.detach(), rtol=0, atol=tolerance)
    np.testing.assert_allclose(trace.weights, weights.detach(), rtol=0, atol=tolerance)


# ---- tables and hooks


def test_sinusoidal_is_roformers_halves():
    reference = roformer.RoFormerSinusoidalPositionalEmbedding(200, 64).create_weight()
    ours = encodings.make("sinusoidal", layout="halves").table(range(200), 64)
    np.testing.assert_allclose(ours, reference, rtol=0, atol=6e-8)


@pytest.mark.parametrize(("d_model", "base"), [(2, 1e4), (64, 1e4), (66, 123.5), (512, 5e5)])
def test_sinusoidal_against_50_digits(d_model, base):
    mp.dps = 50
    positions = [0, 1, 2, 100, 8191]
    ours = encodings.make("sinusoidal", base=base).table(positions, d_model).tolist()
    for p, row in zip(positions, ours, strict=True):
        for i in range(d_model // 2):
            angle = p * mpf(base) ** (-mpf(2 * i) / d_model)
            # the angle p w is rounded twice: by p w 2^-52, whatever its sine
            assert abs(row[2 * i] - mp.sin(angle)) <= 2**-52 * (1 + 4 * angle)
            assert abs(row[2 * i + 1] - mp.cos(angle)) <= 2**-52 * (1 + 4 * angle)


def rotary_config(cls, factor: float = 1.0, base: float = 10_000.0):
    return cls(
        hidden_size=64,
        num_attention_heads=4,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": base,
            "partial_rotary_factor": factor,
        },
    )


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_rope_half_is_llamas(base):
    q, k = random(1, 4, 50, 16), random(1, 4, 50, 16, seed=1)
    at = torch.arange(50)[None]
    cos, sin = llama.LlamaRotaryEmbedding(rotary_config(llama.LlamaConfig, base=base))(q, at)
    theirs = llama.apply_rotary_pos_emb(q, k, cos, sin)
    spec = encodings.make("rope", base=base)
    for ours, reference in zip((spec.rotate(q, at[0]), spec.rotate(k, at[0])), theirs, strict=True):
        # their angles are float32: 50 radians are known to 50 * 2^-24
        np.testing.assert_allclose(ours, reference, rtol=0, atol=2e-5)


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0])
def test_partial_rope_is_gpt_neoxs(factor):
    q, k = random(1, 4, 50, 16), random(1, 4, 50, 16, seed=1)
    at = torch.arange(50)[None]
    config = rotary_config(gpt_neox.GPTNeoXConfig, factor)
    cos, sin = gpt_neox.GPTNeoXRotaryEmbedding(config)(q, at)
    theirs = gpt_neox.apply_rotary_pos_emb(q, k, cos, sin)
    spec = encodings.make("rope", partial_rotary_factor=factor)
    module = spec.build(Dims(d_model=64, n_heads=4))
    for ours, reference in zip(module.rotate(q, k, at[0], at[0]), theirs, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=0, atol=2e-5)


def test_rope_interleaved_is_gptjs():
    x = random(1, 4, 50, 16)
    sin, cos = gptj.create_sinusoidal_positions(50, 16)[None].double().chunk(2, dim=-1)
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)
    ours = encodings.make("rope", pairing="interleaved").rotate(x, range(50))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5)


def test_rope_interleaved_is_roformers():
    q, k = random(1, 4, 50, 16), random(1, 4, 50, 16, seed=1)
    # their sines are exact, given in float64: so is the comparison
    sincos = encodings.make("sinusoidal", layout="halves").table(range(50), 16)
    rotate = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    theirs = rotate(sincos[None, None], q, k)
    spec = encodings.make("rope", pairing="interleaved")
    for x, reference in zip((q, k), theirs, strict=True):
        np.testing.assert_allclose(spec.rotate(x, range(50)), reference, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12, 13, 32])
def test_alibi_is_blooms_and_mpts_up_to_a_shift_of_each_row(n_heads):
    """Both add slope * key only: the same after softmax, as a row may shift by a constant."""
    length = 20
    spec = encodings.make("alibi", causal=True)
    module = spec.build(Dims(d_model=n_heads, n_heads=n_heads))
    zeros = torch.zeros(n_heads, length, 1, dtype=torch.float64)
    ours = module.bias(zeros, zeros, range(length), range(length))
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = ours.masked_fill(future, -math.inf).softmax(-1)
    for theirs in (
        build_alibi_tensor(torch.ones(1, length), n_heads, torch.float64),
        build_mpt_alibi_tensor(n_heads, length).double(),
    ):
        reference = theirs.expand(n_heads, length, length).masked_fill(future, -math.inf)
        np.testing.assert_allclose(weights, reference.softmax(-1), rtol=0, atol=1e-6)
    last_row = build_mpt_alibi_tensor(n_heads, length)[:, 0]
    np.testing.assert_allclose(ours[:, -1], last_row, rtol=1e-6)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (16, 64), (64, 256), (20, 100), (4, 7)])
def test_t5_buckets_are_t5s(buckets, reach, two_sided):
    relative = torch.arange(-400, 401)
    theirs = t5.T5Attention._relative_position_bucket(relative, two_sided, buckets, reach)
    spec = encodings.make("t5", num_buckets=buckets, max_distance=reach, bidirectional=two_sided)
    assert torch.equal(spec.buckets(relative), theirs)


# ---- whole layers


@pytest.mark.parametrize("mask", attention.MASKS)
@pytest.mark.parametrize("name", ["none", "sinusoidal", "learned"])
def test_a_bert_style_layer_is_torchs_multi_head_attention(name, mask):
    trace, w = layer(encodings.make(name), mask=mask)
    hidden = torch.tensor(trace.hidden)[:, None]  # (L, batch, d)
    output, weights = functional.multi_head_attention_forward(
        hidden,
        hidden,
        hidden,
        embed_dim_to_check=DIMS.d_model,
        num_heads=DIMS.n_heads,
        in_proj_weight=torch.cat([w.w_q.T, w.w_k.T, w.w_v.T]),
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=w.w_o.T,
        out_proj_bias=None,
        training=False,
        need_weights=True,
        attn_mask=causal_mask()[0, 0] if mask == "causal" else None,
        average_attn_weights=False,
    )
    compare(trace, output[:, 0], weights[0], 1e-13)


@pytest.mark.parametrize("mask", attention.MASKS)
@pytest.mark.parametrize("name", list(encodings.ENCODINGS))
def test_every_encoding_through_torchs_scaled_dot_product_attention(name, mask):
    trace, w = layer(encodings.make(name), mask=mask)
    q, k, v, bias = (torch.tensor(part) for part in (trace.q_rotated, trace.k_rotated, trace.v, trace.bias))
    bias = bias + (causal_mask()[0] if mask == "causal" else 0)
    scale = {"t5": 1.0, "deberta": (3 * DIMS.d_head) ** -0.5}.get(name, DIMS.d_head**-0.5)
    heads = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
    np.testing.assert_allclose(trace.head_outputs, heads, rtol=0, atol=1e-13)
    output = heads.transpose(0, 1).reshape(LENGTH, DIMS.d_model) @ w.w_o
    np.testing.assert_allclose(trace.output, output, rtol=0, atol=1e-13)


def test_rope_in_a_whole_llama_layer():
    trace, w = layer(encodings.make("rope"), mask="causal")
    config = llama.LlamaConfig(
        hidden_size=DIMS.d_model,
        num_attention_heads=DIMS.n_heads,
        num_key_value_heads=DIMS.n_heads,
        attn_implementation="eager",
    )
    block = llama.LlamaAttention(config, layer_idx=0).double().eval()
    block.q_proj, block.k_proj, block.v_proj, block.o_proj = map(linear, w)
    x = torch.tensor(trace.embedding)[None]
    at = torch.arange(LENGTH)[None]
    with torch.no_grad():
        cos_sin = llama.LlamaRotaryEmbedding(config)(x, at)
        output, weights = block(x, position_embeddings=cos_sin, attention_mask=causal_mask())
    compare(trace, output[0], weights[0], 1e-5)


@pytest.mark.parametrize("two_sided", [True, False])
def test_t5_in_a_whole_t5_layer(two_sided):
    spec = encodings.make("t5", bidirectional=two_sided)
    trace, w = layer(spec, mask="none" if two_sided else "causal")
    config = t5.T5Config(
        d_model=DIMS.d_model,
        d_kv=DIMS.d_head,
        num_heads=DIMS.n_heads,
        is_decoder=not two_sided,
        dropout_rate=0.0,
    )
    config._attn_implementation = "eager"
    block = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double().eval()
    block.q, block.k, block.v, block.o = map(linear, w)
    ours = spec.build(DIMS, 512, torch.Generator().manual_seed(1))
    with torch.no_grad():
        block.relative_attention_bias.weight.copy_(ours.weight)
        x = torch.tensor(trace.embedding)[None]
        output, bias, weights = block(x, mask=None if two_sided else causal_mask())
    np.testing.assert_array_equal(trace.bias, bias[0])
    compare(trace, output[0], weights[0], 1e-13)
