"""T5's bucketed relative bias: Raffel et al. 2019, arXiv 1910.10683."""

from dataclasses import dataclass, field
from functools import lru_cache
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
from posviz.types import Dims, Refusal, Text


@lru_cache(maxsize=256)
def bucket_edges(buckets: int, max_exact: int, max_distance: int) -> tuple[int, ...]:
    """Smallest distance of each bucket after the exact ones, by whole-number comparison.

    With e = max_exact, L = buckets - e, m = max_distance: a distance n lies in bucket >= e + k
    exactly when n^L e^k >= m^k e^L. A float64 logarithm misplaces distance 64 by one bucket.
    """
    levels = buckets - max_exact
    edges = []
    for k in range(1, levels):
        low, high = max_exact, max_distance
        while low < high:
            n = (low + high) // 2
            if n**levels * max_exact**k >= max_distance**k * max_exact**levels:
                high = n
            else:
                low = n + 1
        edges.append(low)
    return tuple(edges)


@dataclass(frozen=True, kw_only=True)
class T5(Encoding):
    """score + b_h[bucket(n - m)]: near distances one bucket each, far ones on a logarithm.

    T5 does not divide the scores by sqrt(d_head). Untrained values: N(0, 1/d_model), as T5 starts.
    """

    name: str = field(default="t5", init=False)
    num_buckets: int = knob(
        32,
        Text("buckets", "桶数"),
        Text("How many distances are told apart, both sides together.", "总共区分多少种距离（两侧合计）。"),
        low=2,
        high=512,
    )
    max_distance: int = knob(
        128,
        Text("farthest distance", "最远距离"),
        Text("From here on every distance shares the last bucket.", "从这里开始，所有距离共用最后一个桶。"),
        low=2,
        high=100_000,
    )
    bidirectional: bool = knob(
        True,
        Text("two-sided", "双向"),
        Text("Off: all keys after the query share bucket 0 (decoder).", "关：查询之后的键都落在 0 号桶（解码器）。"),
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("T5 bias", "T5 偏置")
    summary: ClassVar[Text] = Text(
        "A trainable number for each head and each bucket of distances is added to the score; "
        "before training the numbers are noise.",
        "每个头、每一桶距离各有一个可训练的数，加在分数上；训练之前只是噪声。",
    )
    formula: ClassVar[str] = r"q_m^\top k_n + b_h[\mathrm{bucket}(n-m)]"
    paper: ClassVar[Paper] = Paper(
        "Raffel et al.", 2019, "Exploring the Limits of Transfer Learning (T5)", "1910.10683"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(trainable=True, relative=True, unbounded=True, directional=True)
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "model"
    starts: ClassVar[Text] = Text(
        "The values start as N(0, 1/d_model), as T5's do.",
        "各值从 N(0, 1/d_model) 开始，与 T5 相同。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (Model("T5", "1910.10683"), Model("mT5", "2010.11934"))

    @property
    def buckets_per_side(self) -> int:
        return self.num_buckets // 2 if self.bidirectional else self.num_buckets

    @property
    def max_exact(self) -> int:
        """Distances below this have a bucket of their own."""
        return self.buckets_per_side // 2

    def check(self) -> None:
        if self.bidirectional and (self.num_buckets % 2 or self.num_buckets < 4):
            raise Refusal(
                Text(
                    "`num_buckets` must be even and at least 4 for two-sided T5, got {got}",
                    "双向 T5 要求 `num_buckets` 为偶数且不小于 4，现在是 {got}",
                ),
                field="num_buckets",
                got=self.num_buckets,
            )
        if self.max_distance <= self.max_exact:
            raise Refusal(
                Text(
                    "`max_distance` must be above the {exact} distances that have their own bucket, got {got}",
                    "`max_distance` 必须大于独占一桶的距离数 {exact}，现在是 {got}",
                ),
                field="max_distance",
                exact=self.max_exact,
                got=self.max_distance,
            )

    def scale(self, d_head: int) -> float:
        return 1.0

    def buckets(self, relative: torch.Tensor) -> torch.Tensor:
        """Bucket of each key - query: whole numbers in, int64 of the same shape out."""
        relative = whole_tensor(relative)
        if self.bidirectional:
            side = torch.where(relative > 0, self.buckets_per_side, 0)
            distance = relative.abs()
        else:
            side = torch.zeros_like(relative)
            distance = (-relative).clamp(min=0)
        edges = torch.tensor(bucket_edges(self.buckets_per_side, self.max_exact, self.max_distance), dtype=torch.int64)
        far = self.max_exact + torch.bucketize(distance, edges, right=True)
        return side + torch.where(distance < self.max_exact, distance, far)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        used = self.buckets(torch.arange(-length + 1, length)).unique()
        return [
            Claim(
                Text("distances that have a bucket of their own, each side", "每侧独占一桶的距离数"),
                self.max_exact,
                Text("0 … {last}", "0 … {last}").filled(last=self.max_exact - 1),
            ),
            Claim(
                Text("buckets in use within these positions", "这些位置之内用到的桶数"),
                len(used),
                Text("of {n}", "共 {n} 个").filled(n=self.num_buckets),
                len(used) <= self.num_buckets,
            ),
            Claim(
                Text("trainable numbers, buckets × heads", "可训练的数，桶数 × 头数"),
                module.weight.numel(),
                Text("{b} × {h}", "{b} × {h}").filled(b=self.num_buckets, h=module.dims.n_heads),
                module.weight.numel() == self.num_buckets * module.dims.n_heads,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        bucket = int(self.buckets(torch.tensor(col - row)))
        return (
            rf"b_{{{head}}}[\mathrm{{bucket}}({col} - {row})] = b_{{{head}}}[\mathrm{{bucket}}({col - row})]"
            rf" = b_{{{head}}}[{bucket}] = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch
from posviz import encodings

spec = {self.call()}
generator = torch.Generator().manual_seed({seed})
table = torch.randn(({self.num_buckets}, {dims.n_heads}), generator=generator) * {dims.d_model} ** -0.5
relative = torch.arange({length})[None, :] - torch.arange({length})[:, None]  # key - query
values = table[spec.buckets(relative)].permute(2, 0, 1)  # (n_heads, length, length)
"""


class _Module(PositionModule):
    def __init__(self, spec: T5, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.weight = seeded_normal((spec.num_buckets, dims.n_heads), dims.d_model**-0.5, generator)

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        buckets = self.spec.buckets(relative_positions(q_pos, k_pos))
        return self.weight[buckets].permute(2, 0, 1).to(q)  # (H, Lq, Lk)
