"""A small causal Transformer whose only free choice is the position encoding.

Pre-norm blocks (Xiong et al. 2020, arXiv 2002.04745) around the core's own attention; tied token
embeddings times sqrt(d_model) (Vaswani et al. 2017, section 3.4); GELU; no biases; no dropout.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from posviz import encodings
from posviz.attention import Past, Projections, mix
from posviz.encodings.base import Encoding
from posviz.models.twins import corpus
from posviz.types import Dims

MAX_LEN = 160  # rows of a learned table: more than four times the trained length, on purpose


@dataclass(frozen=True)
class Config:
    """What all twins share."""

    d_model: int = 128
    n_heads: int = 4
    n_layers: int = 3
    max_len: int = MAX_LEN

    @property
    def dims(self) -> Dims:
        return Dims(d_model=self.d_model, n_heads=self.n_heads)


# The causal forms where an encoding has one.
SPECS = {
    "none": partial(encodings.make, "none"),
    "sinusoidal": partial(encodings.make, "sinusoidal"),
    "learned": partial(encodings.make, "learned"),
    "rope": partial(encodings.make, "rope"),
    "alibi": partial(encodings.make, "alibi", causal=True),
    "t5": partial(encodings.make, "t5", bidirectional=False),
    "shaw": partial(encodings.make, "shaw"),
}


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: Config, spec: Encoding, generator: torch.Generator) -> None:
        super().__init__()
        d, dims = config.d_model, config.dims
        deep = (2 * config.n_layers) ** -0.5  # GPT-2: the residual stream grows with depth otherwise

        def matrix(rows: int, cols: int, gain: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, cols, generator=generator) * gain * rows**-0.5)

        self.norm_1, self.norm_2 = nn.LayerNorm(d, bias=False), nn.LayerNorm(d, bias=False)
        self.w_q, self.w_k, self.w_v = matrix(d, d), matrix(d, d), matrix(d, d)
        self.w_o = matrix(d, d, deep)
        self.w_in, self.w_out = matrix(d, 4 * d), matrix(4 * d, d, deep)
        # T5 does not scale its scores, so its queries start smaller; every twin starts with the same content scores.
        self.w_q.data *= dims.d_head**-0.5 / spec.scale(dims.d_head)

    @property
    def projections(self) -> Projections:
        return Projections(self.w_q, self.w_k, self.w_v, self.w_o)

    def forward(
        self, x: torch.Tensor, position: nn.Module, positions: torch.Tensor, past: Past | None
    ) -> tuple[torch.Tensor, Past]:
        """(B, L, d) -> (B, L, d)"""
        mixed, past = mix(self.norm_1(x), position, self.projections, positions=positions, past=past)
        x = x + mixed
        return x + functional.gelu(self.norm_2(x) @ self.w_in) @ self.w_out, past


class Twin(nn.Module):
    """ids (B, L) -> logits (B, L, V). ``seed`` decides every weight; the encoding draws from a stream of its own."""

    def __init__(self, name: str, *, seed: int = 0, config: Config | None = None) -> None:
        super().__init__()
        self.name, self.seed, self.config = name, seed, config or Config()
        self.spec: Encoding = SPECS[name]()
        generator = torch.Generator().manual_seed(seed)
        d = self.config.d_model
        self.tokens = nn.Parameter(torch.randn(len(corpus.vocabulary()), d, generator=generator) * d**-0.5)
        self.blocks = nn.ModuleList(Block(self.config, self.spec, generator) for _ in range(self.config.n_layers))
        self.norm = nn.LayerNorm(d, bias=False)
        # One module for all layers, as T5 shares its bias. Shaw's layers have a table each in the paper; this twin's share
        # one, so that no twin has a position of its own in each layer.
        self.position = self.spec.build(
            self.config.dims, self.config.max_len, torch.Generator().manual_seed(seed + 1_000_003)
        )

    def embedded(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, L) -> (B, L, d), content only."""
        return self.tokens[ids] * self.config.d_model**0.5

    def forward(
        self, ids: torch.Tensor, pasts: list[Past] | None = None, *, last: bool = False
    ) -> tuple[torch.Tensor, list[Past]]:
        """Logits and what the next call needs to go on. last: only of the last token."""
        x, kept = self.hidden(ids, pasts)
        return self.logits(x[..., -1:, :] if last else x), kept

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """(..., d) -> (..., V)"""
        return self.norm(x) @ self.tokens.T

    def hidden(self, ids: torch.Tensor, pasts: list[Past] | None = None) -> tuple[torch.Tensor, list[Past]]:
        """(B, L) -> (B, L, d), what the last block gives, and what the next call needs to go on."""
        start = len(pasts[0].positions) if pasts else 0
        positions = torch.arange(start, start + ids.shape[-1])
        x = self.position.embed(self.embedded(ids), positions)
        kept = []
        for i, block in enumerate(self.blocks):
            x, past = block(x, self.position, positions, pasts[i] if pasts else None)
            kept.append(past)
        return x, kept


def losses(model: Twin, ids: torch.Tensor) -> torch.Tensor:
    """(B, L - 1) cross entropy in nats of every next token; 0 where it is padding."""
    hidden, _ = model.hidden(ids[:, :-1])
    target = ids[:, 1:]
    real = target != 0  # logits are the larger half of a step: none are computed of what nobody asks
    nats = hidden.new_zeros(target.shape)
    nats[real] = functional.cross_entropy(model.logits(hidden[real]), target[real], reduction="none")
    return nats
