"""Rotary position embedding: Su et al. 2021, RoFormer, arXiv 2104.09864, section 3.4."""

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
    base_knob,
    check_head_width,
    knob,
)
from posviz.rotation import PAIRINGS, angles, as_positions, inv_freq, rotate, wavelengths
from posviz.types import Dims, Refusal, Text


@dataclass(frozen=True, kw_only=True)
class Rope(Encoding):
    """Turn pair i of every query and key by p w_i; their product then depends on m - n only.

    pairing: "half" (i, i + width/2) as Llama, "interleaved" (2i, 2i+1) as GPT-J and the paper.
    partial_rotary_factor: share of the head that is turned, the rest passes unchanged (GPT-NeoX, GPT-J).
    """

    name: str = field(default="rope", init=False)
    base: float = base_knob()
    pairing: str = knob(
        "half",
        Text("pairing", "配对"),
        Text(
            "half: dimensions i and i + width/2 (Llama); interleaved: 2i and 2i+1 (GPT-J).",
            "前后（half）：第 i 维配第 i + 宽度/2 维（Llama）；相邻（interleaved）：第 2i 维配第 2i+1 维（GPT-J）。",
        ),
        choices=PAIRINGS,
        names=(Text("half", "前后"), Text("interleaved", "相邻")),
    )
    partial_rotary_factor: float = knob(
        1.0,
        Text("share of the head that turns", "旋转的比例"),
        Text("The rest of each head passes unchanged (partial RoPE).", "每个头其余的维度原样通过（部分旋转）。"),
        low=0.0,
        high=1.0,
        above=True,
    )

    kind: ClassVar[str] = "rotary"
    title: ClassVar[Text] = Text("RoPE", "RoPE")
    summary: ClassVar[Text] = Text(
        "Queries and keys are turned by their own position; in their product only the difference of positions is left.",
        "查询和键各按自己的位置旋转；相乘之后只剩下位置之差。",
    )
    formula: ClassVar[str] = r"(R_m q)^\top (R_n k) = q^\top R_{n-m}\,k,\quad \theta_i = \mathrm{base}^{-2i/d}"
    paper: ClassVar[Paper] = Paper(
        "Su et al.", 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", "2104.09864"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("cos", "sin", "angle")
    used_by: ClassVar[tuple[Model, ...]] = (
        Model("Llama", "2302.13971"),
        Model("PaLM", "2204.02311"),
        Model("GPT-NeoX-20B", "2204.06745"),
    )

    def fits(self, dims: Dims) -> None:
        self._check_width(dims.d_head, dims)

    def width_step(self, n_heads: int) -> int:
        return 2 * n_heads

    def _check_width(self, d_head: int, dims: Dims | None = None) -> None:
        check_head_width(self, d_head, 2, dims)
        width = math.floor(d_head * self.partial_rotary_factor + 1e-9)
        if width < 2 or width % 2:
            raise Refusal(
                Text(
                    "`partial_rotary_factor` must turn an even number of dimensions, at least 2; "
                    "got {f:g} of d_head {e} = {w}",
                    "`partial_rotary_factor` 必须让偶数个、至少 2 个维度旋转；现在 d_head {e} 的 {f:g} 倍是 {w}",
                ),
                field="partial_rotary_factor",
                f=self.partial_rotary_factor,
                e=d_head,
                w=width,
            )

    def rotary_dim(self, d_head: int) -> int:
        """How many dimensions of a head are turned."""
        self._check_width(d_head)
        return math.floor(d_head * self.partial_rotary_factor + 1e-9)

    def inv_freq(self, d_head: int, seq_len: int | None = None) -> torch.Tensor:
        """w_i = base^(-2i / rotary_dim), (rotary_dim/2,) float64; the same for every seq_len."""
        return inv_freq(self.rotary_dim(d_head), self.base)

    def rotate(self, x: torch.Tensor, positions: Positions) -> torch.Tensor:
        """(..., len, d_head) turned by (len,) positions; same shape and dtype."""
        theta = angles(as_positions(positions), self.inv_freq(x.shape[-1]))
        return rotate(x, theta, self.pairing)

    def turns(self, d_head: int) -> tuple[torch.Tensor, str] | None:
        return self.inv_freq(d_head), self.pairing

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        d_head = module.dims.d_head
        x = torch.randn(2, 1, d_head, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        q, k = (row.expand(length, d_head) for row in x)
        norm = float((self.rotate(q, range(length)).norm(dim=1) - q.norm(dim=1)).abs().max())
        near = (self.rotate(q, range(length)) * self.rotate(k, range(3, length + 3))).sum(1)
        far = (self.rotate(q, range(10_000, length + 10_000)) * self.rotate(k, range(10_003, length + 10_003))).sum(1)
        change = float((near - far).abs().max())
        longest = float(wavelengths(self.inv_freq(d_head)).max())
        return [
            Claim(
                Text("length of a vector before and after turning, largest difference", "旋转前后向量长度之差的最大值"),
                norm,
                Text("should be 0", "应为 0"),
                norm < 1e-9,
            ),
            Claim(
                Text(
                    "score of q and k 3 apart, here and 10,000 positions further on, largest change",
                    "相隔 3 的 q 与 k，整体平移 10,000 位时分数的最大变化",
                ),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-6,
            ),
            Claim(
                Text("slowest pair: positions for a full turn", "最慢的一对：转一整圈要多少个位置"),
                longest,
                Text("{n} positions: {turns} turns", "{n} 个位置转 {turns} 圈").filled(
                    n=length, turns=f"{length / longest:.3g}"
                ),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        width = self.rotary_dim(dims.d_head)
        frequency = float(self.inv_freq(dims.d_head)[col])
        angle = rf"{row} \cdot {self.base:g}^{{-{2 * col}/{width}}} = {row} \cdot {frequency:.6g}"
        if picture == "angle":
            return rf"{row}\,\theta_{{{col}}} = {angle} = {row * frequency:.6f} \equiv \mathbf{{{value:.6f}}} \pmod{{2\pi}}"
        return rf"\{picture}({row}\,\theta_{{{col}}}) = \{picture}({angle}) = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        last = {
            "cos": "values = theta.cos()",
            "sin": "values = theta.sin()",
            "angle": "values = torch.remainder(theta + torch.pi, 2 * torch.pi) - torch.pi  # wrapped to [-pi, pi)",
        }[picture]
        return f"""import torch

rotary_dim, length, base = {self.rotary_dim(dims.d_head)}, {length}, {self.base!r}
i = torch.arange(0, rotary_dim, 2, dtype=torch.float64)
omega = base ** (-i / rotary_dim)                               # (pairs,) radians a position
theta = torch.arange(length, dtype=torch.float64)[:, None] * omega  # (length, pairs)
{last}
"""


class _Module(PositionModule):
    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.spec.rotate(q, q_pos), self.spec.rotate(k, k_pos)
