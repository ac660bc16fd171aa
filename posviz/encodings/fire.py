"""Functional interpolation of positions: Li et al. 2023, FIRE, arXiv 2310.04418, section 3."""

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
    seeded_normal,
)
from posviz.rotation import as_positions
from posviz.types import Dims, Text

EPS = 1e-6  # the paper's listing; keeps 0/0 away


@dataclass(frozen=True, kw_only=True)
class Fire(Encoding):
    """MLP(psi(|m - n|) / psi(max(L, m))), psi(x) = ln(c x + 1): distance as a share of the query's position.

    The paper has keys up to the query only. For keys after it, max(L, m, n) stands below, so that the
    share stays in 0 .. 1; under the causal mask that changes nothing. Start values: c = 0.1 and L as the
    paper's listing; the MLP's matrices N(0, 1/inputs), its biases 0 (the paper gives none).
    """

    name: str = field(default="fire", init=False)
    threshold: int = knob(
        512,
        Text("threshold L", "阈值 L"),
        Text(
            "Up to position L only the distance counts; beyond, the distance as a share of the position.",
            "位置不超过 L 时只看距离；超过之后看距离占位置的比例。",
        ),
        low=64,
        high=4096,
    )
    width: int = knob(
        32, Text("hidden units", "隐藏单元数"), Text("Width of the small network.", "小网络的宽度。"), low=4, high=256
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("FIRE", "FIRE")
    summary: ClassVar[Text] = Text(
        "A small network turns the distance, as a share of the query's position, into a bias for each head: "
        "however long the text, the network sees numbers from 0 to 1.",
        "小网络把“距离占查询位置的比例”变成每个头的偏置：文本再长，网络看到的也只是 0 到 1 之间的数。",
    )
    formula: ClassVar[str] = r"f_\theta\!\left(\frac{\psi(|m-n|)}{\psi(\max(L, m))}\right),\quad \psi(x)=\ln(cx+1)"
    paper: ClassVar[Paper] = Paper(
        "Li et al.",
        2023,
        "Functional Interpolation for Relative Positions Improves Long Context Transformers",
        "2310.04418",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=False, unbounded=True, directional=False
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"
    starts: ClassVar[Text] = Text(
        "c = 0.1 and L start as in the paper's listing; it gives none for the MLP, whose matrices start here as N(0, 1/inputs), its biases at 0.",
        "c = 0.1 和 L 按论文的代码；MLP 的初始值论文没有给，这里矩阵为 N(0, 1/输入维数)，偏置为 0。",
    )

    def mirror_blind(self, length: int) -> bool:
        return length <= self.threshold + 1  # beyond L the share depends on the place

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        at = torch.tensor([0, length - 1, self.threshold, 2 * self.threshold, 10 * self.threshold])
        share = module.share(at, at).detach()
        q = torch.zeros(module.dims.n_heads, 1, module.dims.d_head, dtype=torch.float64)
        with torch.no_grad():
            here, there = (module.bias(q, q, [p], [p - 1]) for p in (self.threshold // 2, 10 * self.threshold))
        return [
            Claim(
                Text("what the network sees, largest, also 10 L away", "小网络的输入，最大值（直到 10 L）"),
                float(share.max()),
                Text("never above 1", "不大于 1"),
                float(share.max()) <= 1 and float(share.min()) >= 0,
            ),
            Claim(
                Text(
                    "bias of the previous key: change between position L/2 and 10 L",
                    "前一个键的偏置：位置 L/2 与 10 L 之差",
                ),
                float((here - there).abs().max()),
                Text("not 0: no pure distance beyond L", "不为 0：超过 L 就不只看距离"),
                bool((here != there).any()),
            ),
            Claim(
                Text("trainable numbers", "可训练的数"),
                sum(p.numel() for p in module.parameters()),
                Text("network, c and L's factor", "网络、c 和 L 的系数"),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        below = max(self.threshold, row, col)
        return (
            rf"f_{{{head}}}\!\left(\frac{{\ln(0.1\cdot{abs(row - col)}+1)}}{{\ln(0.1\cdot{below}+1)}}\right)"
            rf" = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch

H, width, L, c = {dims.n_heads}, {self.width}, {self.threshold}, torch.tensor(0.1).double()
generator = torch.Generator().manual_seed({seed})
w1 = torch.randn((width,), generator=generator).double()
w2 = (torch.randn((H, width), generator=generator) * width**-0.5).double()
n = torch.arange({length}, dtype=torch.float64)
below = torch.maximum(n[:, None], n[None, :]).clamp(min=L)
share = (c * (n[:, None] - n[None, :]).abs() + 1).log() / ((c * below + 1).log() + {EPS})
values = torch.einsum("hw,mnw->hmn", w2, (share[..., None] * w1).relu())  # (n_heads, length, length)
"""


class _Module(PositionModule):
    def __init__(self, spec: Fire, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.w1 = seeded_normal((spec.width,), 1.0, generator)
        self.w2 = seeded_normal((dims.n_heads, spec.width), spec.width**-0.5, generator)
        self.b1 = nn.Parameter(torch.zeros(spec.width))
        self.b2 = nn.Parameter(torch.zeros(dims.n_heads))
        self.c = nn.Parameter(torch.tensor(0.1))
        self.multiplier = nn.Parameter(torch.tensor(1.0))  # of L

    def share(self, q_pos: Positions, k_pos: Positions, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        """psi(|m - n|) / psi(max(L, m, n)), (Lq, Lk) in 0 .. 1."""
        distance = relative_positions(q_pos, k_pos).abs().to(dtype)
        farther = torch.maximum(as_positions(q_pos)[:, None], as_positions(k_pos)[None, :]).to(dtype)
        threshold = (self.multiplier.to(dtype) * self.spec.threshold).abs()
        c = self.c.to(dtype)
        # max, not clamp: a gradient reaches the multiplier where the threshold is the larger one
        below = (c * torch.maximum(farther, threshold)).abs().log1p() + EPS
        return (c * distance).abs().log1p() / below

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        share = self.share(q_pos, k_pos, q.dtype)
        hidden = (share[..., None] * self.w1.to(q) + self.b1.to(q)).relu()  # (Lq, Lk, width)
        return (hidden @ self.w2.to(q).T + self.b2.to(q)).permute(2, 0, 1)  # (H, Lq, Lk)
