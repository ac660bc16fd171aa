"""A learned vector of time: Kazemi et al. 2019, Time2Vec, arXiv 1907.05321, equation 1."""

import math
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
    seeded_normal,
)
from posviz.rotation import as_positions
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class Time2Vec(Encoding):
    """[w_0 p + f_0, sin(w_1 p + f_1), sin(w_2 p + f_2), ...]: one line, and waves whose speed is trained.

    The paper hands the vector to a model in place of the time; here it is added to the embedding. The
    paper names no start values: frequencies are drawn from N(0, std^2), phases evenly from 0 .. 2 pi.
    """

    name: str = field(default="time2vec", init=False)
    std: float = knob(
        0.1,
        Text("std of the start frequencies", "初始频率的标准差"),
        Text("Radians a position; trained from there.", "单位：弧度/位置；从这里开始训练。"),
        low=1e-3,
        high=3.0,
    )

    kind: ClassVar[str] = "additive"
    title: ClassVar[Text] = Text("Time2Vec", "Time2Vec")
    summary: ClassVar[Text] = Text(
        "One straight line and many waves whose frequencies and phases are trained; before training they are random. "
        "The line grows without end.",
        "一条直线加许多正弦波，频率和相位都可训练；训练之前是随机的。直线会一直增长。",
    )
    formula: ClassVar[str] = (
        r"\left[\omega_0 p+\varphi_0,\ \sin(\omega_1 p+\varphi_1),\ \dots,\ \sin(\omega_{d-1} p+\varphi_{d-1})\right]"
    )
    paper: ClassVar[Paper] = Paper(
        "Kazemi et al.", 2019, "Time2Vec: Learning a Vector Representation of Time", "1907.05321"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=False, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("table",)
    sharing: ClassVar[str] = "model"
    starts: ClassVar[Text] = Text(
        "The paper names no start values; here frequencies start as N(0, std²), phases even from 0 to 2π.",
        "论文没有给初始值；这里频率为 N(0, std²)，相位在 0 到 2π 之间均匀分布。",
    )

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        with torch.no_grad():
            rows = module.rows(torch.arange(length), torch.float64)
        bend = float(rows[:, 0].diff(n=2).abs().max()) if length > 2 else 0.0
        wave = float(rows[:, 1:].abs().max()) if rows.shape[1] > 1 else 0.0
        return [
            Claim(
                Text("first column: largest bend of its line", "第一列：偏离直线的最大值"),
                bend,
                Text("should be 0", "应为 0"),
                bend < 1e-6,
            ),
            Claim(
                Text("other columns: largest size", "其余各列：最大的绝对值"),
                wave,
                Text("never above 1", "不大于 1"),
                wave <= 1 + 1e-12,
            ),
            Claim(
                Text("trainable numbers, 2 × d_model", "可训练的数，2 × d_model"),
                sum(p.numel() for p in module.parameters()),
                Text("2 × {d}", "2 × {d}").filled(d=module.dims.d_model),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        body = rf"{row}\,\omega_{{{col}}} + \varphi_{{{col}}}"
        return (rf"\sin({body})" if col else body) + rf" = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import math
import torch

generator = torch.Generator().manual_seed({seed})
omega = (torch.randn(({dims.d_model},), generator=generator) * {self.std!r}).double()
phase = (torch.rand({dims.d_model}, generator=generator) * 2 * math.pi).double()
values = torch.arange({length}, dtype=torch.float64)[:, None] * omega + phase
values[:, 1:] = values[:, 1:].sin()
"""


class _Module(PositionModule):
    def __init__(self, spec: Time2Vec, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.frequencies = seeded_normal((dims.d_model,), spec.std, generator)
        self.phases = nn.Parameter(torch.rand(dims.d_model, generator=generator) * 2 * math.pi)

    def rows(self, positions: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """(L,) positions -> (L, d_model)"""
        theta = positions.to(torch.float64)[:, None] * self.frequencies.double() + self.phases.double()
        return torch.cat([theta[:, :1], theta[:, 1:].sin()], dim=1).to(dtype)

    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        at = torch.arange(x.shape[-2]) if positions is None else as_positions(positions)
        return x + self.rows(at, x.dtype)
