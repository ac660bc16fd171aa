"""Relative attention of Conformer: Gulati et al. 2020, arXiv 2005.08100, as speech models write it."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Model,
    Paper,
    PositionModule,
    base_knob,
    check_model_width,
    seeded_normal,
)
from posviz.encodings.transformer_xl import RelativeModule, relative_claims
from posviz.rotation import angles, inv_freq, whole_tensor
from posviz.types import Dims, Text

STD = 0.02  # of the projection, as wav2vec2-conformer starts; u and v are Xavier uniform there


@dataclass(frozen=True, kw_only=True)
class Conformer(Encoding):
    """Transformer-XL's score with sines and cosines interleaved, always over both directions.

    The paper names no start values; these are wav2vec2-conformer's: the projection N(0, 0.02^2),
    u and v uniform within sqrt(6 / (n_heads + d_head)).
    """

    name: str = field(default="conformer", init=False)
    base: float = base_knob()

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("Conformer relative", "Conformer 相对位置")
    summary: ClassVar[Text] = Text(
        "Speech models' form of Transformer-XL: 2L − 1 sinusoids for distances from L − 1 before to L − 1 after, "
        "and two trained vectors for each head.",
        "语音模型里的 Transformer-XL：距离从前 L − 1 到后 L − 1，共 2L − 1 行正弦编码，每个头另有两个可训练的向量。",
    )
    formula: ClassVar[str] = (
        r"\frac{(q_m+u)^\top k_n + (q_m+v)^\top W R_{m-n}}{\sqrt{d}},\quad R_{k,2i}=\sin k\omega_i,\ R_{k,2i+1}=\cos k\omega_i"
    )
    paper: ClassVar[Paper] = Paper(
        "Gulati et al.", 2020, "Conformer: Convolution-augmented Transformer for Speech Recognition", "2005.08100"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=True, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"
    used_by: ClassVar[tuple[Model, ...]] = (Model("Conformer", "2005.08100"), Model("w2v-BERT", "2108.06209"))

    def fits(self, dims: Dims) -> None:
        check_model_width(self, dims, 2)

    def width_step(self, n_heads: int) -> int:
        return n_heads * (1 + n_heads % 2)

    def waves(self, distances: torch.Tensor, d_model: int) -> torch.Tensor:
        """R for query - key distances: (n,) whole numbers -> (n, d_model) float64, sine and cosine in turn."""
        theta = angles(whole_tensor(distances), inv_freq(d_model, self.base))
        return torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        return relative_claims(module, length)

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        heads = (dims.n_heads, dims.d_head)
        bound = math.sqrt(6 / sum(heads))
        w_r = seeded_normal((dims.d_model, dims.d_model), STD, generator)
        u, v = (nn.Parameter((2 * torch.rand(heads, generator=generator) - 1) * bound) for _ in range(2))
        return RelativeModule(self, dims, max_len, w_r, u, v)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        return (
            rf"\frac{{u_{{{head}}}^\top k + (q+v_{{{head}}})^\top W R_{{{row}-{col}}}}}{{\sqrt{{{dims.d_head}}}}}"
            rf"\Big|_{{q=k=(1,\dots,1)}} = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import math
import torch

d, H, e, length = {dims.d_model}, {dims.n_heads}, {dims.d_head}, {length}
generator = torch.Generator().manual_seed({seed})
w_r = (torch.randn((d, d), generator=generator) * {STD}).double()
bound = math.sqrt(6 / (H + e))
u, v = (((2 * torch.rand((H, e), generator=generator) - 1) * bound).double() for _ in range(2))
distance = torch.arange(-length + 1, length)                             # query - key
omega = {self.base!r} ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
theta = distance[:, None] * omega
waves = torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)
r = (waves @ w_r).unflatten(-1, (H, e))                                  # (2 length - 1, H, e)
# for queries and keys of ones
profile = (torch.einsum("nhe,he->hn", r, 1 + v) + u.sum(-1, keepdim=True)) * e**-0.5
m, n = torch.arange(length)[:, None], torch.arange(length)[None, :]
values = profile[:, m - n + length - 1]                                  # (H, length, length)
"""
