"""Relative position vectors: Shaw et al. 2018, arXiv 1803.02155, equation 5 (keys)."""

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


@dataclass(frozen=True, kw_only=True)
class Shaw(Encoding):
    """e_mn = q_m . (k_n + a_clip(n-m, -K, K)) / sqrt(d_head), one table a for all heads.

    Untrained vectors: Glorot normal over the (2K + 1, d_head) table.
    """

    name: str = field(default="shaw", init=False)
    max_relative: int = knob(
        16,
        Text("clip distance K", "截断距离 K"),
        Text("Distances beyond K are treated as K.", "超过 K 的距离都当作 K。"),
        low=1,
        high=4096,
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("Shaw", "Shaw")
    summary: ClassVar[Text] = Text(
        "A trainable vector for each distance is added to the key, so the query decides how much a distance counts; "
        "distances beyond K share one vector.",
        "每个距离一个可训练的向量，加在键上，由查询决定这个距离有多重要；超过 K 的距离共用一个向量。",
    )
    formula: ClassVar[str] = r"e_{mn} = \frac{q_m^\top\left(k_n + a_{\mathrm{clip}(n-m,\,-K,\,K)}\right)}{\sqrt{d}}"
    paper: ClassVar[Paper] = Paper(
        "Shaw et al.", 2018, "Self-Attention with Relative Position Representations", "1803.02155"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=True, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("distance_table",)
    sharing: ClassVar[str] = "layer"
    starts: ClassVar[Text] = Text(
        "The vectors start Glorot normal, N(0, 2/(2K + 1 + d_head)).",
        "各向量按 Glorot 正态分布开始：N(0, 2/(2K + 1 + d_head))。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("Music Transformer", "1809.04281"),)

    def index(self, relative: torch.Tensor) -> torch.Tensor:
        """Row of the table for each key - query: clip(., -K, K) + K, in 0 .. 2K."""
        return whole_tensor(relative).clamp(-self.max_relative, self.max_relative) + self.max_relative

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        reach = self.max_relative
        ones = torch.ones(1, 1, module.dims.d_head)
        far = module.bias(ones, ones, [0], [reach, reach + 1, reach + 1000]).detach()
        return [
            Claim(
                Text("vectors in the table, 2K + 1", "表中的向量数，2K + 1"),
                module.weight.shape[0],
                Text("K = {k}", "K = {k}").filled(k=reach),
                module.weight.shape[0] == 2 * reach + 1,
            ),
            Claim(
                Text(
                    "bias at distance K, K + 1 and K + 1000: largest difference",
                    "距离 K、K + 1、K + 1000 处偏置的最大差",
                ),
                float(far.max() - far.min()),
                Text("should be 0", "应为 0"),
                bool(far.max() == far.min()),
            ),
            Claim(
                Text("trainable numbers, (2K + 1) × d_head", "可训练的数，(2K + 1) × d_head"),
                module.weight.numel(),
                Text("shared by all heads", "所有头共用"),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        return rf"a_{{{row - self.max_relative}}}[{col}] = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        rows = 2 * self.max_relative + 1
        return f"""import math
import torch

rows, d_head = {rows}, {dims.d_head}  # distances -{self.max_relative} … {self.max_relative}
generator = torch.Generator().manual_seed({seed})
values = torch.randn((rows, d_head), generator=generator) * math.sqrt(2 / (rows + d_head))
"""


class _Module(PositionModule):
    def __init__(self, spec: Shaw, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        rows = 2 * spec.max_relative + 1
        std = math.sqrt(2 / (rows + dims.d_head))
        self.weight = seeded_normal((rows, dims.d_head), std, generator)

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        # q.a for every distance first, (..., H, Lq, 2K+1), then pick: never an (Lq, Lk, d_head) tensor.
        by_distance = q @ self.weight.to(q).T * self.spec.scale(q.shape[-1])
        index = self.spec.index(relative_positions(q_pos, k_pos)).expand(*q.shape[:-1], -1)
        return by_distance.gather(-1, index)
