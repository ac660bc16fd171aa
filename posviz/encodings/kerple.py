"""Kernelised relative positions: Chi et al. 2022, KERPLE, arXiv 2205.09921, sections 4.1 and 4.2."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Paper,
    PositionModule,
    Positions,
    knob,
    relative_positions,
)
from posviz.types import Dims, Text

SMALLEST = 0.01  # the authors' code keeps both parameters at least this large


@dataclass(frozen=True, kw_only=True)
class Kerple(Encoding):
    """-r1 ln(1 + r2 |m - n|), or -r1 |m - n|^r2: a trainable fall-off for each head.

    Untrained values are uniform, as the authors' code starts: log r1 in 0 .. 2, r2 in 0 .. 1; power
    r1 in 0 .. 1, r2 in 0 .. 2; neither below 0.01. A power with r2 = 1 is ALiBi.
    """

    name: str = field(default="kerple", init=False)
    kernel: str = knob(
        "log",
        Text("kernel", "核函数"),
        Text(
            "log: falls ever more slowly; power: r2 = 1 falls like ALiBi.",
            "对数：越远降得越慢；幂：r2 = 1 时与 ALiBi 相同。",
        ),
        choices=("log", "power"),
        names=(Text("log", "对数"), Text("power", "幂")),
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("KERPLE", "KERPLE")
    summary: ClassVar[Text] = Text(
        "Every head subtracts a penalty for distance whose height and shape are trained. It cannot tell left from right.",
        "每个头按距离扣分，扣多少、怎么降都可训练。它分不清左右。",
    )
    formula: ClassVar[str] = r"-r_1\ln(1+r_2|m-n|)\quad\mathrm{or}\quad -r_1|m-n|^{r_2}"
    paper: ClassVar[Paper] = Paper(
        "Chi et al.", 2022, "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation", "2205.09921"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=False
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"
    starts: ClassVar[Text] = Text(
        "Evenly drawn, as in the authors' code: log r₁ from 0 to 2, r₂ from 0 to 1; power r₁ from 0 to 1, r₂ from 0 to 2.",
        "均匀抽取，与作者的代码相同：对数核 r₁ 在 0 到 2，r₂ 在 0 到 1；幂核 r₁ 在 0 到 1，r₂ 在 0 到 2。",
    )

    @property
    def ranges(self) -> tuple[float, float]:
        """Upper ends of the start values of r1 and r2."""
        return (2.0, 1.0) if self.kernel == "log" else (1.0, 2.0)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        q = torch.zeros(module.dims.n_heads, 1, module.dims.d_head, dtype=torch.float64)
        with torch.no_grad():
            curve = module.bias(q, q.expand(-1, length, -1), [0], range(length))[:, 0]
        rise = float(curve.diff(dim=1).max()) if length > 1 else 0.0
        return [
            Claim(
                Text("bias at distance 0, largest over the heads", "距离 0 处的偏置，各头最大值"),
                float(curve[:, 0].abs().max()),
                Text("should be 0", "应为 0"),
                not curve[:, 0].any(),
            ),
            Claim(
                Text("largest step of the bias away from the query", "离查询每远一步，偏置的最大变化"),
                rise,
                Text("never above 0", "不大于 0"),
                rise <= 0,
            ),
            Claim(
                Text("trainable numbers, 2 × heads", "可训练的数，2 × 头数"),
                sum(p.numel() for p in module.parameters()),
                Text("2 × {h}", "2 × {h}").filled(h=module.dims.n_heads),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        body = rf"\ln(1+r_2\,|{row}-{col}|)" if self.kernel == "log" else rf"|{row}-{col}|^{{r_2}}"
        return rf"b_{{{head}}}({row}, {col}) = -r_1\,{body} = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        first, second = self.ranges
        body = "(1 + r2 * distance).log()" if self.kernel == "log" else "distance**r2"
        return f"""import torch

generator = torch.Generator().manual_seed({seed})
r1 = (torch.rand({dims.n_heads}, generator=generator) * {first}).clamp(min={SMALLEST}).double()[:, None, None]
r2 = (torch.rand({dims.n_heads}, generator=generator) * {second}).clamp(min={SMALLEST}).double()[:, None, None]
n = torch.arange({length}, dtype=torch.float64)
distance = (n[None, :] - n[:, None]).abs()
values = -r1 * {body}  # (n_heads, length, length)
"""


class _Module(PositionModule):
    def __init__(self, spec: Kerple, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.r1, self.r2 = (
            nn.Parameter((torch.rand(dims.n_heads, generator=generator) * high).clamp(min=SMALLEST))
            for high in spec.ranges
        )

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        distance = relative_positions(q_pos, k_pos).abs().to(q.dtype)  # (Lq, Lk)
        r1, r2 = (r.to(q).clamp(min=SMALLEST)[:, None, None] for r in (self.r1, self.r2))
        if self.spec.kernel == "log":
            return -r1 * torch.log1p(r2 * distance)
        return -r1 * distance ** r2.clamp(max=2.0)  # beyond 2 it is no kernel any more
