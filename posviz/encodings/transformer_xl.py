"""Relative attention of Transformer-XL: Dai et al. 2019, arXiv 1901.02860, section 3.3."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from posviz.encodings.base import Model, Paper, PositionModule, base_knob, seeded_normal
from posviz.encodings.relative import RelativeModule, RelativeWaves
from posviz.types import Dims, Text

STD = 0.02  # the authors' start value for W_R, u and v


@dataclass(frozen=True, kw_only=True)
class TransformerXL(RelativeWaves):
    """(q + u).k + (q + v).W R_(m-n), over sqrt(d_head): sinusoids of the distance, projected by a trained W.

    u, v: one vector a head, the same for every query. R: sines, then cosines. Untrained: N(0, 0.02^2).
    Full attention needs 2L - 1 rows of R, causal attention L.
    """

    name: str = field(default="transformer_xl", init=False)
    base: float = base_knob()

    title: ClassVar[Text] = Text("Transformer-XL", "Transformer-XL")
    summary: ClassVar[Text] = Text(
        "The query meets a projected sinusoid of the distance, and two trained vectors stand in for the query's own "
        "position; before training these are small noise.",
        "查询与“距离的正弦编码”（经投影）相乘，另有两个可训练的向量代替查询自己的位置；训练之前它们只是小噪声。",
    )
    formula: ClassVar[str] = r"\frac{(q_m+u)^\top k_n + (q_m+v)^\top W R_{m-n}}{\sqrt{d}}"
    paper: ClassVar[Paper] = Paper(
        "Dai et al.", 2019, "Transformer-XL: Attentive Language Models beyond a Fixed-Length Context", "1901.02860"
    )
    starts: ClassVar[Text] = Text(
        "W, u and v start as N(0, 0.02²), as in the authors' code.",
        "W、u、v 都从 N(0, 0.02²) 开始，与作者的代码相同。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("Transformer-XL", "1901.02860"), Model("XLNet", "1906.08237"))

    def laid_out(self, theta: torch.Tensor) -> torch.Tensor:
        return torch.cat([theta.sin(), theta.cos()], dim=-1)

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        d, heads = dims.d_model, (dims.n_heads, dims.d_head)
        w_r = seeded_normal((d, d), STD, generator)
        u, v = (seeded_normal(heads, STD, generator) for _ in range(2))
        return RelativeModule(self, dims, max_len, w_r, u, v)

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        starts = f"""generator = torch.Generator().manual_seed({seed})
w_r = (torch.randn((d, d), generator=generator) * {STD}).double()
u, v = ((torch.randn((H, e), generator=generator) * {STD}).double() for _ in range(2))"""
        return self.relative_snippet(dims, length, starts, "torch.cat([theta.sin(), theta.cos()], dim=-1)")
