"""Positions counted by content: Golovneva et al. 2024, CoPE, arXiv 2405.18719, section 4."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Paper,
    PositionModule,
    Positions,
    knob,
    seeded_normal,
)
from posviz.rotation import as_positions
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class Cope(Encoding):
    """A key's position is how many gates lie between it and the query: p_mn = sum_j sigmoid(q_m . k_j).

    The score adds q_m . e[p_mn] / sqrt(d_head), e interpolated between whole positions and held at the
    last one. The paper counts back from the query; keys after it, which the paper masks, are counted
    forward the same way. The authors start e at 0, where CoPE does nothing yet; std 0 is not offered,
    the default N(0, 0.02^2) shows what it can do.
    """

    name: str = field(default="cope", init=False)
    positions: int = knob(
        64,
        Text("positions", "位置数"),
        Text(
            "Vectors e[0], e[1], …; a larger count stays at the last one.",
            "向量 e[0]、e[1]……；数到更大时停在最后一个。",
        ),
        low=2,
        high=1024,
    )
    std: float = knob(
        0.02,
        Text("std of the start values", "初始标准差"),
        Text("The authors start at 0: then nothing is added before training.", "作者从 0 开始：训练之前什么都不加。"),
        low=1e-3,
        high=10.0,
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("CoPE", "CoPE")
    summary: ClassVar[Text] = Text(
        "The query decides which tokens count; a key's position is how many of them lie in between. "
        "So it can count sentences instead of tokens, once it is trained.",
        "由查询决定哪些词元要数；键的位置就是中间数到了几个。训练之后，它可以数句子，而不是数词元。",
    )
    formula: ClassVar[str] = (
        r"\frac{q_m^\top(k_n + e[p_{mn}])}{\sqrt{d}},\quad p_{mn}=\sum_{j=n}^{m}\sigma(q_m^\top k_j)"
    )
    paper: ClassVar[Paper] = Paper(
        "Golovneva et al.", 2024, "Contextual Position Encoding: Learning to Count What's Important", "2405.18719"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=False, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"
    starts: ClassVar[Text] = Text(
        "The authors start at 0, where CoPE adds nothing yet; here it starts as N(0, std²), to show what it can do.",
        "作者从 0 开始，那时 CoPE 什么都不加；这里从 N(0, std²) 开始，好看出它能做什么。",
    )

    def count(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        """p_mn, (..., H, Lq, Lk): the gates of all keys from the nearer of m, n to the farther, both included."""
        gates = (q @ k.mT).sigmoid()
        at, keys = as_positions(q_pos), as_positions(k_pos)
        order = keys.argsort(stable=True)
        place = order.argsort()
        ranked = keys[order]
        total = torch.nn.functional.pad(gates[..., order].cumsum(-1), (1, 0))  # total[r]: gates of the first r keys
        up_to, before = torch.searchsorted(ranked, at, right=True), torch.searchsorted(ranked, at)
        earlier = keys[None, :] <= at[:, None]  # (Lq, Lk)
        high = torch.where(earlier, up_to[:, None], place[None, :] + 1)
        low = torch.where(earlier, place[None, :], before[:, None])
        shape = gates.shape
        return total.gather(-1, high.expand(shape)) - total.gather(-1, low.expand(shape))

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        dims = module.dims
        n = min(length, 64)
        q, k = (
            torch.randn(dims.n_heads, n, dims.d_head, generator=torch.Generator().manual_seed(s), dtype=torch.float64)
            for s in (0, 1)
        )
        counted = self.count(q, k, range(n), range(n))
        own = torch.diagonal(counted, dim1=-2, dim2=-1) - (q * k).sum(-1).sigmoid()
        back = counted[:, -1].diff(dim=-1)  # the last query's keys, from the first on: ever fewer gates
        return [
            Claim(
                Text("position of the query's own key minus its gate, largest", "查询自己的键的位置减去它的门，最大值"),
                float(own.abs().max()),
                Text("should be 0", "应为 0"),
                float(own.abs().max()) < 1e-9,
            ),
            Claim(
                Text(
                    "mean position of the first key, seen from token {n}", "从第 {n} 个词元看第一个键，平均位置"
                ).filled(n=n),
                float(counted[:, -1, 0].mean()),
                Text("{n} for a plain count", "若每个词元都数，则为 {n}").filled(n=n),
            ),
            Claim(
                Text("largest step of the position towards the query", "朝查询每近一步，位置的最大变化"),
                float(back.max()) if n > 1 else 0.0,
                Text("never above 0", "不大于 0"),
                n < 2 or float(back.max()) <= 1e-12,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        gate = float(torch.tensor(float(dims.d_head), dtype=torch.float64).sigmoid())
        p = min((abs(row - col) + 1) * gate, self.positions - 1)
        return (
            rf"p = \min({abs(row - col) + 1}\cdot\sigma({dims.d_head}),\ {self.positions - 1}) = {p:.5f},\quad"
            rf"\frac{{q^\top e[p]}}{{\sqrt{{{dims.d_head}}}}}\Big|_{{q=k=(1,\dots,1)}} = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch

H, e, rows, length = {dims.n_heads}, {dims.d_head}, {self.positions}, {length}
generator = torch.Generator().manual_seed({seed})
table = (torch.randn((rows, e), generator=generator) * {self.std!r}).double()
n = torch.arange(length, dtype=torch.float64)
gate = torch.tensor(float(e)).double().sigmoid()                     # q.k for queries and keys of ones
position = (((n[None, :] - n[:, None]).abs() + 1) * gate).clamp(max=rows - 1)
low, share = position.floor().long(), position - position.floor()
score = table.sum(-1) * e**-0.5                                      # q.e[r] for every r
values = (score[low] * (1 - share) + score[(low + 1).clamp(max=rows - 1)] * share).expand(H, -1, -1)
"""


class _Module(PositionModule):
    def __init__(self, spec: Cope, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.table = seeded_normal((spec.positions, dims.d_head), spec.std, generator)

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        last = self.spec.positions - 1
        position = self.spec.count(q, k, q_pos, k_pos).clamp(max=last)
        low = position.detach().floor().clamp(0, last).long()
        share = position - low
        whole = q @ self.table.to(q).T * self.spec.scale(q.shape[-1])  # q.e for every whole position
        return whole.gather(-1, low) * (1 - share) + whole.gather(-1, (low + 1).clamp(max=last)) * share
