"""Multi-head self-attention that returns every intermediate.

Vaswani et al. 2017, arXiv 1706.03762, section 3.2.2: project, split into heads, scale, mask, softmax,
weighted sum, concatenate, W_O. The encoding enters through its three hooks, which are always called.
"""

from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from posviz.encodings.base import Encoding, PositionModule
from posviz.types import (
    MAX_LEN,
    AttentionTrace,
    Dims,
    Refusal,
    Text,
    Tokens,
    read_only,
    shown,
    whole_number,
)

MASKS = ("none", "causal")
MAX_SEED = 2**31 - 1


class Projections(NamedTuple):
    """The four (d_model, d_model) matrices of a layer; y = x @ w."""

    w_q: torch.Tensor
    w_k: torch.Tensor
    w_v: torch.Tensor
    w_o: torch.Tensor


def untrained_projections(d_model: int, seed: int) -> Projections:
    """Seeded N(0, 1/d_model) matrices; they depend on the seed and d_model only, never on the encoding."""
    # A stream of their own, or a learned table would begin with the very numbers of W_q.
    generator = torch.Generator().manual_seed(seed + MAX_SEED + 1)
    return Projections(*(torch.randn(d_model, d_model, generator=generator) * d_model**-0.5 for _ in range(4)))


# For attend alone, which never writes to them: a page compares many encodings on the same weights.
_kept_projections = lru_cache(maxsize=4)(untrained_projections)


def untrained_embedding(tokens: Tokens, d_model: int, seed: int) -> torch.Tensor:
    """(L, d_model) from N(0, 1); the same piece and seed give the same vector in every sentence."""
    rows = {}
    for piece in dict.fromkeys(tokens.ids):
        # One generator for each piece, so that a vector does not depend on the other words.
        generator = torch.Generator().manual_seed((piece ^ (seed * 0x9E3779B97F4A7C15)) & (2**63 - 1))
        rows[piece] = torch.randn(d_model, generator=generator)
    return torch.stack([rows[piece] for piece in tokens.ids])


def attend(
    tokens: Tokens,
    spec: Encoding,
    dims: Dims,
    *,
    seed: int = 0,
    mask: str = "none",
    max_len: int = 512,
    dtype: torch.dtype = torch.float64,
) -> AttentionTrace:
    """One untrained, seeded layer on a sentence.

    seed: 0..2^31-1, of the embeddings, projections and the encoding's own parameters. mask: "none" or
    "causal" (a query sees itself and what came before). max_len: longest sentence, rows of a learned
    table. dtype: what the layer computes in. Raises :class:`Refusal`.
    """
    seed = whole_number("seed", seed, 0, MAX_SEED)
    check_mask(mask, spec)
    check_length(tokens, max_len)
    module = spec.build(dims, max_len, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return trace(
            tokens,
            untrained_embedding(tokens, dims.d_model, seed).to(dtype),
            module.to(dtype),
            Projections(*(w.to(dtype) for w in _kept_projections(dims.d_model, seed))),
            seed=seed,
            mask=mask,
            keep_w_o=False,  # the seed says it all, and many traces are kept
        )


def check_mask(mask: str, spec: Encoding) -> None:
    """Refuse an unknown mask, and full attention for an encoding that is defined backwards only."""
    if mask not in MASKS:
        raise Refusal(
            Text("`mask` must be one of {allowed}, got {got}", "`mask` 只能是 {allowed} 之一，现在是 {got}"),
            field="mask",
            allowed=", ".join(MASKS),
            got=shown(mask),
        )
    if spec.needs_causal_mask and mask != "causal":
        raise Refusal(
            Text(
                "the causal form of {name} needs the causal mask, got mask {got}; "
                "set the mask to causal or turn the causal form off",
                "{name} 的因果形式需要因果掩码，现在的掩码是 {got}；请把掩码改成 causal，或关掉因果形式",
            ),
            field="mask",
            name=spec.title,
            got=mask,
        )


def check_length(tokens: Tokens, max_len: int) -> None:
    """Refuse a sentence without tokens or longer than max_len."""
    whole_number("max_len", max_len, 1, MAX_LEN)
    if not len(tokens):
        raise Refusal(
            Text("the sentence is empty; type at least one word", "句子是空的；请至少输入一个词"), field="text"
        )
    if len(tokens) > max_len:
        raise Refusal(
            Text(
                "`max_len` must be at least the sentence's {n} tokens, got {got}",
                "`max_len` 不能小于句子的 {n} 个词元，现在是 {got}",
            ),
            field="max_len",
            n=len(tokens),
            got=max_len,
        )


def trace(
    tokens: Tokens,
    embedding: torch.Tensor,
    module: PositionModule,
    projections: Projections,
    *,
    seed: int,
    mask: str,
    added: torch.Tensor | None = None,
    keep_w_o: bool = True,
) -> AttentionTrace:
    """The layer itself, for any embedding (L, d_model), module and projections.

    keep_w_o: whether the trace holds on to the output projection (no copy is made).

    added: what position has already put into this layer's input beside ``embedding``, (L, d_model); a model
    of several layers embeds once, so that only its first layer can tell content from position. By default
    ``module.embed`` adds it here.
    """
    spec, dims = module.spec, module.dims
    check_mask(mask, spec)
    positions = torch.arange(len(tokens))
    if added is None:
        hidden = module.embed(embedding)
        added = hidden - embedding if spec.kind == "additive" else torch.zeros_like(embedding)
        split = spec.kind == "additive"
    else:
        hidden = embedding + added
        split = bool(added.any())

    def heads(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return split_heads(x @ w, dims.n_heads)

    q, k, v = (heads(hidden, w) for w in projections[:3])
    q_rotated, k_rotated = module.rotate(q, k, positions, positions)
    scale = spec.scale(dims.d_head)
    offset = module.bias(q_rotated, k_rotated, positions, positions)
    bias = offset.expand(dims.n_heads, len(tokens), len(tokens))
    product = q_rotated @ k_rotated.mT * scale  # (H, L, L)
    scores = product + bias
    allowed = allowed_cells(len(tokens), mask)
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    head_outputs = weights @ v  # (H, L, e)
    output = join_heads(head_outputs) @ projections.w_o  # (L, H * e) @ (d, d)

    if split:
        parts = _additive_parts(embedding, added, projections, heads, scale)
    elif spec.kind == "rotary":
        content = q @ k.mT * scale
        parts = {"content": content, "rotation": product - content}
    elif spec.kind == "bias":
        parts = {"content": product, "bias": bias}
    else:
        parts = {"content": product}
    return AttentionTrace(
        tokens=tokens,
        spec=spec,
        dims=dims,
        seed=seed,
        mask=mask,
        scale=scale,
        embedding=read_only(embedding),
        position=read_only(added),
        hidden=read_only(hidden),
        q=read_only(q),
        k=read_only(k),
        v=read_only(v),
        q_rotated=read_only(q_rotated),
        k_rotated=read_only(k_rotated),
        parts=MappingProxyType({name: read_only(part) for name, part in parts.items()}),
        bias=np.broadcast_to(read_only(offset), scores.shape),  # read-only, no copy where it is 0
        scores=read_only(scores),
        allowed=read_only(allowed),
        weights=read_only(weights),
        head_outputs=read_only(head_outputs),
        output=read_only(output),
        w_o=_view(projections.w_o.unflatten(0, (dims.n_heads, -1))) if keep_w_o else None,
    )


class Past(NamedTuple):
    """Keys (already turned), values (..., H, L, e) and positions (L,) of tokens that are not computed again."""

    k: torch.Tensor
    v: torch.Tensor
    positions: torch.Tensor


def mix(
    hidden: torch.Tensor,
    module: PositionModule,
    projections: Projections,
    *,
    mask: str = "causal",
    positions: torch.Tensor | None = None,
    past: Past | None = None,
) -> tuple[torch.Tensor, Past]:
    """The same layer without its intermediates, for training and generation: (..., L, d) -> (..., L, d).

    ``hidden`` is the layer's input as it is: ``module.embed`` is not called, since a model embeds once and
    has several layers. positions (L,) default to 0 .. L-1; with ``past`` the queries see its keys too.
    Returns the output and the keys and values for the next call.
    """
    heads = module.dims.n_heads
    check_mask(mask, module.spec)
    if positions is None:
        positions = torch.arange(hidden.shape[-2])
    q, k, v = (split_heads(hidden @ w, heads) for w in projections[:3])  # (..., H, L, e)
    q, k = module.rotate(q, k, positions, positions)
    k_positions = positions
    if past is not None:
        k, v = torch.cat([past.k, k], -2), torch.cat([past.v, v], -2)
        k_positions = torch.cat([past.positions, positions])
    offset = module.bias(q, k, positions, k_positions)
    if mask == "causal":
        later = k_positions[None, :] > positions[:, None]  # (Lq, Lk)
        offset = torch.zeros_like(later, dtype=q.dtype).masked_fill(later, -torch.inf) + offset
    heads_out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=offset.expand(*q.shape[:-1], k.shape[-2]), scale=module.spec.scale(module.dims.d_head)
    )
    return join_heads(heads_out) @ projections.w_o, Past(k, v, k_positions)


def split_heads(x: torch.Tensor, n_heads: int) -> torch.Tensor:
    """(..., L, d) -> (..., L, H, e) -> (..., H, L, e)"""
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def join_heads(x: torch.Tensor) -> torch.Tensor:
    """(..., H, L, e) -> (..., L, H, e) -> (..., L, d)"""
    return x.transpose(-3, -2).flatten(-2)


def _view(x: torch.Tensor) -> np.ndarray:
    """The tensor's own memory, read-only."""
    array = x.detach().numpy()
    array.flags.writeable = False
    return array


def allowed_cells(length: int, mask: str) -> torch.Tensor:
    """(L, L) bool: True where query i may look at key j."""
    full = torch.ones(length, length, dtype=torch.bool)
    return full.tril() if mask == "causal" else full


def _additive_parts(embedding, added, projections, heads, scale) -> dict[str, torch.Tensor]:
    """(x_m + p_m) W_q . (x_n + p_n) W_k multiplied out: four (H, L, L) terms."""
    q_content, q_position = heads(embedding, projections.w_q), heads(added, projections.w_q)
    k_content, k_position = heads(embedding, projections.w_k), heads(added, projections.w_k)
    return {
        "content_content": q_content @ k_content.mT * scale,
        "content_position": q_content @ k_position.mT * scale,
        "position_content": q_position @ k_content.mT * scale,
        "position_position": q_position @ k_position.mT * scale,
    }
