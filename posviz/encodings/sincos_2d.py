"""Sinusoids for images: He et al. 2021, MAE, arXiv 2111.06377; Carion et al. 2020, DETR, arXiv 2005.12872."""

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
    check_model_width,
    knob,
)
from posviz.encodings.grid import grid_positions, grid_snippet, height_knob, rows_and_columns, width_knob
from posviz.rotation import inv_freq
from posviz.types import Dims, Text

EPS = 1e-6  # DETR's


@dataclass(frozen=True, kw_only=True)
class SinCos2D(Encoding):
    """One sinusoidal table for the row, one for the column, d/2 wide each, side by side.

    form: "mae" (MAE's code: column half first, sines then cosines), "rows_first" (the same, row half
    first), "detr" (row half first, sine and cosine in turn, counted from 1 and scaled to 2 pi).
    """

    name: str = field(default="sincos_2d", init=False)
    base: float = base_knob()
    grid_height: int = height_knob()
    grid_width: int = width_knob()
    form: str = knob(
        "mae",
        Text("form", "形式"),
        Text(
            "MAE: column half first, as its code has it; rows first; DETR: counted from 1 and scaled to 2π.",
            "MAE：按其代码，列在前；行在前；DETR：从 1 数起，并归一化到 2π。",
        ),
        choices=("mae", "rows_first", "detr"),
        names=(Text("MAE", "MAE"), Text("rows first", "行在前"), Text("DETR", "DETR")),
    )

    kind: ClassVar[str] = "additive"
    title: ClassVar[Text] = Text("2-D sin-cos", "二维正弦")
    summary: ClassVar[Text] = Text(
        "Half of the dimensions encode the row of a patch, the other half its column; nothing is trained.",
        "一半维度编码图块在第几行，另一半编码第几列；不用训练。",
    )
    formula: ClassVar[str] = (
        r"PE_{r,c} = \left[PE^{(d/2)}_c;\ PE^{(d/2)}_r\right],\quad PE_{r,c}\cdot PE_{r',c'} = \sum_i\cos\Delta_r\omega_i + \sum_i\cos\Delta_c\omega_i"
    )
    paper: ClassVar[Paper] = Paper("He et al.", 2021, "Masked Autoencoders Are Scalable Vision Learners", "2111.06377")
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=False, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("grid", "table")
    axes: ClassVar[int] = 2
    used_by: ClassVar[tuple[Model, ...]] = (Model("MAE", "2111.06377"), Model("DETR", "2005.12872"))

    def fits(self, dims: Dims) -> None:
        check_model_width(self, dims, 4)

    def width_step(self, n_heads: int) -> int:
        return math.lcm(n_heads, 4)

    def table(self, positions: Positions, d_model: int) -> torch.Tensor:
        """(len,) tokens or (len, 2) rows and columns -> (len, d_model) float64."""
        check_model_width(self, Dims(d_model=d_model, n_heads=1), 4)
        at = rows_and_columns(positions, self.grid_width).to(torch.float64)
        if self.form == "detr":
            sizes = torch.tensor([self.grid_height, self.grid_width], dtype=torch.float64)
            at = (at + 1) / (sizes + EPS) * 2 * math.pi
        halves = [self._axis(at[:, axis], d_model // 2) for axis in (0, 1)]
        return torch.cat(halves[::-1] if self.form == "mae" else halves, dim=-1)

    def _axis(self, at: torch.Tensor, width: int) -> torch.Tensor:
        theta = at[:, None] * inv_freq(width, self.base)
        if self.form == "detr":
            return torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)
        return torch.cat([theta.sin(), theta.cos()], dim=-1)

    def patch_similarity(self, dims: Dims, row: int, col: int) -> torch.Tensor:
        """Cosine of patch (row, col) with every patch, (grid_height, grid_width) float64."""
        rows = self.table(grid_positions(self.grid_height, self.grid_width), dims.d_model)
        chosen = rows[row * self.grid_width + col]
        return (rows @ chosen / (dims.d_model / 2)).reshape(self.grid_height, self.grid_width)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        d = module.dims.d_model
        at = grid_positions(4, 5)
        rows = self.table(at, d)
        norm = float((rows.square().sum(1) - d / 2).abs().max())
        moved = self.table(at + torch.tensor([3, 2]), d)
        change = float((rows @ rows.T - moved @ moved.T).abs().max())
        product = rows @ rows.T
        both = product[0, 6] + d / 2  # one row down and one column right, and no step at all
        apart = float((product[0, 5] + product[0, 1] - both).abs())
        return [
            Claim(
                Text("‖PE‖² − d/2, largest over a 4 × 5 grid", "‖PE‖² − d/2，4 × 5 网格上的最大值"),
                norm,
                Text("should be 0", "应为 0"),
                norm < 1e-9,
            ),
            Claim(
                Text("dot products, whole grid moved by (3, 2): largest change", "整个网格移动 (3, 2)：点积的最大变化"),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-9,
            ),
            Claim(
                Text("one step down plus one step right, minus the diagonal step", "下一步加右一步，减去斜着一步"),
                apart,
                Text("should be 0: the axes add up", "应为 0：两轴的作用可相加"),
                apart < 1e-9,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        if picture == "grid":
            return rf"\frac{{PE_{{\mathrm{{chosen}}}}\cdot PE_{{{row},{col}}}}}{{d/2}} = \mathbf{{{value:.6f}}}"
        r, c = row // self.grid_width, row % self.grid_width
        half = dims.d_model // 2
        column_first = self.form == "mae"
        what = ("c", c) if (col < half) == column_first else ("r", r)
        return rf"PE_{{r={r},\,c={c}}}[{col}]:\ \mathrm{{axis}}\ {what[0]} = {what[1]},\quad \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        head = f"""import torch
from posviz import Dims, encodings

spec = {self.call()}
"""
        if picture == "grid":
            rows = f"rows = spec.table(torch.arange(H * W), {dims.d_model})  # (H * W, d_model), row by row of the grid"
            size = self.grid_height, self.grid_width
            return head + grid_snippet(rows, "rows", f"rows @ chosen / {dims.d_model / 2}", patch, size)
        return (
            head
            + f"""values = spec.table(torch.arange({length}), {dims.d_model})  # (length, d_model), row by row of the grid
"""
        )


class _Module(PositionModule):
    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        at = torch.arange(x.shape[-2]) if positions is None else positions
        return x + self.spec.table(at, x.shape[-1]).to(x)
