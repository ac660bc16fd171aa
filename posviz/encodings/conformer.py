"""Relative attention of Conformer: Gulati et al. 2020, arXiv 2005.08100, as speech models write it."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn

from posviz.encodings.base import Model, Paper, PositionModule, base_knob, seeded_normal
from posviz.encodings.relative import RelativeModule, RelativeWaves
from posviz.types import Dims, Text

STD = 0.02  # of the projection, as wav2vec2-conformer starts; u and v are Xavier uniform there


@dataclass(frozen=True, kw_only=True)
class Conformer(RelativeWaves):
    """Transformer-XL's score with sines and cosines interleaved, always over both directions.

    The paper names no start values; these are wav2vec2-conformer's: the projection N(0, 0.02^2),
    u and v uniform within sqrt(6 / (n_heads + d_head)).
    """

    name: str = field(default="conformer", init=False)
    base: float = base_knob()

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
    starts: ClassVar[Text] = Text(
        "The paper names no start values; these are wav2vec2-conformer's: W as N(0, 0.02²), u and v even within ±√(6/(H + d_head)).",
        "论文没有给初始值，这里用 wav2vec2-conformer 的：W 为 N(0, 0.02²)，u、v 在 ±√(6/(H + d_head)) 之内均匀分布。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("Conformer", "2005.08100"), Model("w2v-BERT", "2108.06209"))

    def laid_out(self, theta: torch.Tensor) -> torch.Tensor:
        return torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        heads = (dims.n_heads, dims.d_head)
        bound = math.sqrt(6 / sum(heads))
        w_r = seeded_normal((dims.d_model, dims.d_model), STD, generator)
        u, v = (nn.Parameter((2 * torch.rand(heads, generator=generator) - 1) * bound) for _ in range(2))
        return RelativeModule(self, dims, max_len, w_r, u, v)

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        starts = f"""generator = torch.Generator().manual_seed({seed})
w_r = (torch.randn((d, d), generator=generator) * {STD}).double()
bound = math.sqrt(6 / (H + e))
u, v = (((2 * torch.rand((H, e), generator=generator) - 1) * bound).double() for _ in range(2))"""
        laid_out = "torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)"
        return self.relative_snippet(dims, length, starts, laid_out, imports="import math\n")
