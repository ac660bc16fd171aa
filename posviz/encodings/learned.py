"""Learned absolute positions: one trainable vector a position (BERT, 1810.04805; GPT-2)."""

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
    seeded_normal,
)
from posviz.rotation import as_positions
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class Learned(Encoding):
    """x_p + E[p] with a table E of max_len rows. Before training it is noise: N(0, std^2).

    counting: "bert" looks up row p; "roberta" row p + 2 of a table with two more rows (OPT does the same).
    """

    name: str = field(default="learned", init=False)
    std: float = knob(
        0.02,
        Text("std of the start values", "初始标准差"),
        Text("Spread of the untrained table; BERT and GPT-2 use 0.02.", "未训练的表的标准差；BERT 和 GPT-2 用 0.02。"),
        low=1e-6,  # not 0: far below, float32 would silently round the table to nothing
        high=10.0,
    )

    counting: str = knob(
        "bert",
        Text("first row used", "第一个用到的行"),
        Text(
            "BERT and GPT-2 count from row 0. RoBERTa and OPT count from row 2: two more rows, never used for words.",
            "BERT 和 GPT-2 从第 0 行数起。RoBERTa 和 OPT 从第 2 行数起：多出的两行不给词用。",
        ),
        choices=("bert", "roberta"),
        names=(Text("row 0 (BERT)", "第 0 行（BERT）"), Text("row 2 (RoBERTa)", "第 2 行（RoBERTa）")),
    )

    kind: ClassVar[str] = "additive"
    title: ClassVar[Text] = Text("learned", "可学习")
    summary: ClassVar[Text] = Text(
        "One trainable vector for each position; before training it is noise, and beyond its last row there is nothing.",
        "每个位置一个可训练的向量；训练之前只是噪声，超过最后一行就没有定义。",
    )
    formula: ClassVar[str] = r"x_p + E_p,\quad E\in\mathbb{R}^{\mathrm{max\_len}\times d}"
    paper: ClassVar[Paper] = Paper(
        "Devlin et al.", 2018, "BERT: Pre-training of Deep Bidirectional Transformers", "1810.04805"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=False, unbounded=False, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("table",)
    sharing: ClassVar[str] = "model"
    starts: ClassVar[Text] = Text(
        "The table starts as N(0, std²); BERT and GPT-2 start with 0.02.",
        "表从 N(0, std²) 开始；BERT 和 GPT-2 用 0.02。",
    )
    used_by: ClassVar[tuple[Model, ...]] = (
        Model("BERT", "1810.04805"),
        Model("RoBERTa", "1907.11692"),
        Model("OPT", "2205.01068"),
    )

    @property
    def offset(self) -> int:
        """Row of position 0. RoBERTa and OPT start behind the padding row 1."""
        return 2 if self.counting == "roberta" else 0

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        weight = module.weight.detach().double()
        rows = module.max_len + self.offset
        nearest = torch.nn.functional.normalize(weight, dim=1)
        neighbours = (nearest[:-1] * nearest[1:]).sum(1)
        return [
            Claim(
                Text("trainable numbers, rows × d_model", "可训练的数，行数 × d_model"),
                weight.numel(),
                Text("{n} × {d}", "{n} × {d}").filled(n=weight.shape[0], d=weight.shape[1]),
                weight.numel() == rows * module.dims.d_model,
            ),
            Claim(
                Text("spread of the untrained table", "未训练的表的标准差"),
                float(weight.std(correction=0)),
                Text("drawn with {std}", "按 {std} 抽取").filled(std=f"{self.std:g}"),
            ),
            Claim(
                Text(
                    "mean cosine of neighbouring positions: untrained, neighbours are strangers",
                    "相邻位置的平均余弦：未训练时，邻居互不相识",
                ),
                float(neighbours.mean()) if len(neighbours) else float("nan"),
                Text("about 0", "约为 0"),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        return rf"E[{row + self.offset}, {col}] = \mathbf{{{value:.6f}}} \sim \mathcal{{N}}(0, {self.std:g}^2)"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch

generator = torch.Generator().manual_seed({seed})
table = torch.randn(({length + self.offset}, {dims.d_model}), generator=generator) * {self.std!r}  # (rows, d_model)
values = table[{self.offset}:]  # position 0 is row {self.offset}
"""


class _Module(PositionModule):
    def __init__(self, spec: Learned, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        self.weight = seeded_normal((max_len + spec.offset, dims.d_model), spec.std, generator)

    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        at = torch.arange(x.shape[-2]) if positions is None else positions
        return x + self.weight[as_positions(at, rows=self.max_len) + self.spec.offset].to(x)
