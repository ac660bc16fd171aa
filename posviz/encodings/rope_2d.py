"""Axial rotation for images: Heo et al. 2024, arXiv 2403.13298, section 3.2; Qwen2-VL's vision tower, 2409.12191."""

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
from posviz.encodings.grid import (
    grid_positions,
    grid_snippet,
    height_knob,
    rows_and_columns,
    turned_alike,
    width_knob,
)
from posviz.rotation import PAIRINGS, inv_freq, rotate
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class Rope2D(Encoding):
    """The first half of a head's pairs turn by the row, the second half by the column of a patch.

    w_i = base^(-4i/d_head) for both axes. Heo et al. take base 100 and the column first, Qwen2-VL 10000
    and the row first, which is what this is.
    """

    name: str = field(default="rope_2d", init=False)
    base: float = base_knob()
    grid_height: int = height_knob()
    grid_width: int = width_knob()
    pairing: str = knob(
        "half",
        Text("pairing", "配对"),
        Text(
            "half: dimensions i and i + width/2 (Qwen2-VL); interleaved: 2i and 2i+1.",
            "前后（half）：第 i 维配第 i + 宽度/2 维（Qwen2-VL）；相邻（interleaved）：第 2i 维配第 2i+1 维。",
        ),
        choices=PAIRINGS,
        names=(Text("half", "前后"), Text("interleaved", "相邻")),
    )

    kind: ClassVar[str] = "rotary"
    title: ClassVar[Text] = Text("2-D RoPE", "二维 RoPE")
    summary: ClassVar[Text] = Text(
        "Half of the pairs turn by the row of a patch, half by its column; the product keeps only how many rows and "
        "columns lie between.",
        "一半维度对按图块的行旋转，一半按列旋转；相乘之后只剩下相差几行、几列。",
    )
    formula: ClassVar[str] = (
        r"(R_{r,c}\,q)^\top (R_{r',c'}\,k) = q^\top \mathrm{diag}\!\left(R_{r'-r},\,R_{c'-c}\right)k"
    )
    paper: ClassVar[Paper] = Paper("Heo et al.", 2024, "Rotary Position Embedding for Vision Transformer", "2403.13298")
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=False, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("grid", "cos", "sin", "angle")
    axes: ClassVar[int] = 2
    used_by: ClassVar[tuple[Model, ...]] = (
        Model("Qwen2-VL (vision)", "2409.12191"),
        Model("Pixtral", "2410.07073"),
        Model("EVA-02", "2303.11331"),
    )

    def fits(self, dims: Dims) -> None:
        check_head_width(self, dims.d_head, 4, dims)

    def width_step(self, n_heads: int) -> int:
        return 4 * n_heads

    def inv_freq(self, d_head: int, seq_len: int | None = None) -> torch.Tensor:
        """(d_head/2,) float64: w_i of the pairs that turn by the row, then the same for the column."""
        check_head_width(self, d_head, 4)
        return inv_freq(d_head // 2, self.base).repeat(2)

    def angles(self, positions: Positions, d_head: int) -> torch.Tensor:
        """(len,) tokens or (len, 2) rows and columns -> (len, d_head/2) float64 radians: row pairs, column pairs."""
        at = rows_and_columns(positions, self.grid_width).to(torch.float64)
        frequencies = self.inv_freq(d_head)
        return at.repeat_interleave(d_head // 4, dim=-1) * frequencies

    def rotate(self, x: torch.Tensor, positions: Positions) -> torch.Tensor:
        """(..., len, d_head) turned; same shape and dtype."""
        return rotate(x, self.angles(positions, x.shape[-1]), self.pairing)

    def patch_similarity(self, dims: Dims, row: int, col: int) -> torch.Tensor:
        """Score of a vector of ones with itself, turned to (row, col) and to every patch, over d_head."""
        theta = self.angles(grid_positions(self.grid_height, self.grid_width), dims.d_head)
        return turned_alike(theta, self.grid_height, self.grid_width, row, col)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        e = module.dims.d_head
        at = grid_positions(3, 4)
        q, k = (torch.randn(12, e, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1))
        here, there = (
            self.rotate(q, at + shift) @ self.rotate(k, at + shift).T
            for shift in (torch.tensor([0, 0]), torch.tensor([50, 7]))
        )
        change = float((here - there).abs().max())
        norm = float((self.rotate(q, at).norm(dim=1) - q.norm(dim=1)).abs().max())
        return [
            Claim(
                Text(
                    "scores of a 3 × 4 grid moved by (50, 7): largest change", "3 × 4 网格移动 (50, 7)：分数的最大变化"
                ),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-9,
            ),
            Claim(
                Text("length of a vector before and after turning, largest difference", "旋转前后向量长度之差的最大值"),
                norm,
                Text("should be 0", "应为 0"),
                norm < 1e-9,
            ),
            Claim(
                Text("pairs that turn by the row, and as many by the column", "按行旋转的维度对个数，按列的同样多"),
                e // 4,
                Text("d_head / 4 = {n}", "d_head / 4 = {n}").filled(n=e // 4),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        if picture == "grid":
            return rf"\frac{{1}}{{d/2}}\sum_i \cos(\Delta_r\omega_i)+\cos(\Delta_c\omega_i)\Big|_{{({row},{col})}} = \mathbf{{{value:.6f}}}"
        r, c, pairs = row // self.grid_width, row % self.grid_width, dims.d_head // 4
        axis, at = ("r", r) if col < pairs else ("c", c)
        w = float(inv_freq(dims.d_head // 2, self.base)[col % pairs])
        name = {"cos": r"\cos", "sin": r"\sin", "angle": ""}[picture]
        return rf"{name}({axis}\,\omega = {at}\cdot {w:.6g} = {at * w:.6g}) = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        head = f"""import torch
from posviz import encodings

spec = {self.call()}
"""
        if picture == "grid":
            rows = f"theta = spec.angles(torch.arange(H * W), {dims.d_head})  # (H * W, pairs): by row, then by column"
            size = self.grid_height, self.grid_width
            return head + grid_snippet(rows, "theta", "(theta - chosen).cos().mean(-1)", patch, size)
        last = {
            "cos": "values = theta.cos()",
            "sin": "values = theta.sin()",
            "angle": "values = torch.remainder(theta + torch.pi, 2 * torch.pi) - torch.pi  # wrapped to [-pi, pi)",
        }[picture]
        return (
            head
            + f"theta = spec.angles(torch.arange({length}), {dims.d_head})  # (length, pairs), row by row of the grid\n{last}\n"
        )


class _Module(PositionModule):
    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.spec.rotate(q, q_pos), self.spec.rotate(k, k_pos)
