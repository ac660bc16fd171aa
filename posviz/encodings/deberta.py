"""Disentangled attention of DeBERTa: He et al. 2020, arXiv 2006.03654, equations 3 and 4."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Model,
    Paper,
    PositionModule,
    Positions,
    knob,
    relative_positions,
    seeded_normal,
)
from posviz.rotation import whole_tensor
from posviz.types import Dims, Text

STD = 0.02  # the authors' start value of every matrix


@dataclass(frozen=True, kw_only=True)
class Deberta(Encoding):
    """content-to-content + content-to-position + position-to-content, over sqrt(3 d_head).

    q_m . Kr[d(m, n)] + k_n . Qr[...], where Kr = P W_k and Qr = P W_q project one table P of 2K distances
    and d(m, n) = clip(m - n + K, 0, 2K - 1). index: the paper takes Qr at d(n, m), the authors' code at
    d(m, n). Untrained: N(0, 0.02^2).
    """

    name: str = field(default="deberta", init=False)
    max_relative: int = knob(
        512,
        Text("clip distance K", "截断距离 K"),
        Text("Distances beyond K are treated as K; the table has 2K rows.", "超过 K 的距离都当作 K；表有 2K 行。"),
        low=1,
        high=1024,
    )
    index: str = knob(
        "code",
        Text("position-to-content index", "位置对内容的下标"),
        Text(
            "Which row the key meets: the released code takes m − n, the paper's equation 4 n − m.",
            "键与哪一行相乘：公开的代码用 m − n，论文式 (4) 用 n − m。",
        ),
        choices=("code", "paper"),
        names=(Text("code: m − n", "代码：m − n"), Text("paper: n − m", "论文：n − m")),
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("DeBERTa", "DeBERTa")
    summary: ClassVar[Text] = Text(
        "The query meets a vector for the distance, and so does the key: content and position are kept apart. "
        "Before training the vectors are small noise.",
        "查询与距离向量相乘，键也与距离向量相乘：内容与位置分开。训练之前这些向量只是小噪声。",
    )
    formula: ClassVar[str] = (
        r"\frac{q_m^\top k_n + q_m^\top K^r_{\delta(m,n)} + k_n^\top Q^r_{\delta(m,n)\ \mathrm{or}\ \delta(n,m)}}{\sqrt{3d}}"
    )
    paper: ClassVar[Paper] = Paper(
        "He et al.", 2020, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", "2006.03654"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=True, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"
    starts: ClassVar[Text] = Text(
        "The table and both projections start as N(0, 0.02²), as in the authors' code.",
        "表和两个投影都从 N(0, 0.02²) 开始，与作者的代码相同。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("DeBERTa", "2006.03654"), Model("DeBERTaV3", "2111.09543"))

    def scale(self, d_head: int) -> float:
        return 1 / math.sqrt(3 * d_head)

    def rows(self, distance: torch.Tensor) -> torch.Tensor:
        """Row of the table for each query - key: clip(. + K, 0, 2K - 1)."""
        return (whole_tensor(distance) + self.max_relative).clamp(0, 2 * self.max_relative - 1)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        reach, dims = self.max_relative, module.dims
        q, k = (torch.randn(dims.n_heads, 1, dims.d_head, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
        with torch.no_grad():
            far = module.bias(q, k.expand(-1, 2, -1), [0], [reach, reach + 1000])
        numbers = sum(p.numel() for p in module.parameters())
        d = dims.d_model
        return [
            Claim(
                Text("bias at distance K and K + 1000: largest difference", "距离 K 与 K + 1000 处偏置的最大差"),
                float((far[..., 0] - far[..., 1]).abs().max()),
                Text("should be 0", "应为 0"),
                torch.equal(far[..., 0], far[..., 1]),
            ),
            Claim(
                Text("factor of every score", "每个分数的系数"),
                self.scale(dims.d_head),
                Text("1 / √(3 × {e})", "1 / √(3 × {e})").filled(e=dims.d_head),
            ),
            Claim(
                Text("trainable numbers, 2K × d + 2d²", "可训练的数，2K × d + 2d²"),
                numbers,
                Text("the table is shared by all layers", "表由所有层共用"),
                numbers == 2 * reach * d + 2 * d * d,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        key, query = (int(self.rows(torch.tensor(d))) for d in (row - col, self.sign * (row - col)))
        return (
            rf"\frac{{q^\top K^r_{{{key}}} + k^\top Q^r_{{{query}}}}}{{\sqrt{{3\cdot {dims.d_head}}}}}"
            rf"\Big|_{{q=k=(1,\dots,1)}} = \mathbf{{{value:.6f}}}"
        )

    @property
    def sign(self) -> int:
        """1 where the key's row is that of m - n, -1 where it is that of n - m."""
        return 1 if self.index == "code" else -1

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch

d, H, e, K, length = {dims.d_model}, {dims.n_heads}, {dims.d_head}, {self.max_relative}, {length}
generator = torch.Generator().manual_seed({seed})
p = (torch.randn((2 * K, d), generator=generator) * {STD}).double()
w_k, w_q = ((torch.randn((d, d), generator=generator) * {STD}).double() for _ in range(2))
kr, qr = ((p @ w).unflatten(-1, (H, e)).sum(-1).T for w in (w_k, w_q))  # (H, 2K), for queries and keys of ones
m, n = torch.arange(length)[:, None], torch.arange(length)[None, :]
row = (m - n + K).clamp(0, 2 * K - 1)
back = ({self.sign} * (m - n) + K).clamp(0, 2 * K - 1)
values = (kr[:, row] + qr[:, back]) * (3 * e) ** -0.5                     # (H, length, length)
"""


class _Module(PositionModule):
    def __init__(self, spec: Deberta, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.table = seeded_normal((2 * spec.max_relative, dims.d_model), STD, generator)
        self.w_k, self.w_q = (seeded_normal((dims.d_model,) * 2, STD, generator) for _ in range(2))

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        distance = -relative_positions(q_pos, k_pos)  # query - key, (Lq, Lk)
        to_position = _meet(q, self._project(self.w_k, q), self.spec.rows(distance))
        to_content = _meet(k, self._project(self.w_q, k), self.spec.rows(self.spec.sign * distance).T).mT
        return (to_position + to_content) * self.spec.scale(q.shape[-1])

    def _project(self, w: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """P @ w by heads, (H, 2K, e)"""
        return (self.table @ w).to(like).unflatten(-1, (self.dims.n_heads, -1)).transpose(0, 1)


def _meet(x: torch.Tensor, vectors: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """x (..., H, L, e) . vectors[h, rows (L, M)] -> (..., H, L, M), whichever way needs less room."""
    other = rows.shape[1]
    if other * x.shape[-1] < vectors.shape[-2]:
        return torch.einsum("...hle,hlme->...hlm", x, vectors[:, rows])
    return (x @ vectors.mT).gather(-1, rows.expand(*x.shape[:-1], -1))
