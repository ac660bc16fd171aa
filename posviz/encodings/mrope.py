"""Multimodal rotation: Wang et al. 2024, Qwen2-VL, arXiv 2409.12191, section 2.1."""

from collections.abc import Sequence
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
from posviz.encodings.grid import grid_snippet, height_knob, turned_alike, width_knob
from posviz.rotation import as_positions, inv_freq, rotate, whole_tensor
from posviz.types import Dims, Refusal, Text, shown, whole_number

MAX_TOKENS = 1_000_000  # of one piece


@dataclass(frozen=True, kw_only=True)
class MRope(Encoding):
    """RoPE whose pairs listen to three numbers: the first band to time, then rows, then columns.

    A text token has the same number three times, which is 1-D RoPE. Qwen2-VL's bands are 16, 24, 24 of 64
    pairs: a quarter for time, the rest split. Pairing as Llama: i with i + d_head/2.
    """

    name: str = field(default="mrope", init=False)
    base: float = base_knob()
    time_share: float = knob(
        0.25,
        Text("share of the pairs for time", "时间占的维度对比例"),
        Text(
            "The rest is split between rows and columns; Qwen2-VL: 16 of 64.",
            "其余由行和列平分；Qwen2-VL 是 64 对中的 16 对。",
        ),
        low=0.0,
        high=1.0,
    )
    grid_height: int = height_knob()
    grid_width: int = width_knob()

    kind: ClassVar[str] = "rotary"
    title: ClassVar[Text] = Text("M-RoPE", "M-RoPE")
    summary: ClassVar[Text] = Text(
        "One rotation for text, images and video: some pairs turn by time, some by row, some by column. "
        "In text all three numbers are equal, and it is plain RoPE.",
        "文字、图像、视频共用一种旋转：一部分维度对按时间转，一部分按行，一部分按列。文字的三个数相同，就是普通的 RoPE。",
    )
    formula: ClassVar[str] = (
        r"\theta_i = p_{a(i)}\,\omega_i,\quad a(i)\in\{\mathrm{time},\mathrm{row},\mathrm{column}\}"
    )
    paper: ClassVar[Paper] = Paper(
        "Wang et al.",
        2024,
        "Qwen2-VL: Enhancing Vision-Language Model's Perception of the World at Any Resolution",
        "2409.12191",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("cos", "sin", "angle", "grid")
    axes: ClassVar[int] = 3
    used_by: ClassVar[tuple[Model, ...]] = (Model("Qwen2-VL", "2409.12191"), Model("Qwen2.5-VL", "2502.13923"))

    def fits(self, dims: Dims) -> None:
        check_head_width(self, dims.d_head, 2, dims)

    def width_step(self, n_heads: int) -> int:
        return 2 * n_heads

    def inv_freq(self, d_head: int, seq_len: int | None = None) -> torch.Tensor:
        """w_i = base^(-2i / d_head), (d_head/2,) float64, fastest first across all three bands."""
        check_head_width(self, d_head, 2)
        return inv_freq(d_head, self.base)

    def sections(self, d_head: int) -> tuple[int, int, int]:
        """Pairs for time, rows and columns; they add up to d_head / 2."""
        pairs = d_head // 2
        time = int(pairs * self.time_share + 0.5)
        rows = (pairs - time + 1) // 2
        return time, rows, pairs - time - rows

    def angles(self, positions: Positions, d_head: int) -> torch.Tensor:
        """(len,) text positions or (len, 3) time, row, column -> (len, d_head/2) float64 radians."""
        frequencies = self.inv_freq(d_head)
        if whole_tensor(positions).dim() == 2:
            at = as_positions(positions, axes=3)
        else:
            at = as_positions(positions)[:, None].expand(-1, 3)
        axis = torch.arange(3).repeat_interleave(torch.tensor(self.sections(d_head)))
        return at[:, axis].to(torch.float64) * frequencies

    def rotate(self, x: torch.Tensor, positions: Positions) -> torch.Tensor:
        """(..., len, d_head) turned; same shape and dtype."""
        return rotate(x, self.angles(positions, x.shape[-1]), "half")

    def patch_similarity(self, dims: Dims, row: int, col: int) -> torch.Tensor:
        """Score of a vector of ones with itself, turned to (row, col) and to every patch of one image, over d_head."""
        theta = self.angles(ids([("image", (1, self.grid_height, self.grid_width))]), dims.d_head)
        return turned_alike(theta, self.grid_height, self.grid_width, row, col)

    def turns(self, d_head: int) -> tuple[torch.Tensor, str] | None:
        return self.inv_freq(d_head), "half"

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        e = module.dims.d_head
        x = torch.randn(3, e, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        at = torch.tensor([0, 5, 9])
        plain = rotate(x, at.to(torch.float64)[:, None] * self.inv_freq(e), "half")
        text = float((self.rotate(x, at) - plain).abs().max())
        three = torch.tensor([[0, 0, 0], [0, 3, 5], [2, 1, 4]])
        here, there = (self.rotate(x, three + s) @ self.rotate(x, three + s).T for s in (0, torch.tensor([9, 40, 7])))
        change = float((here - there).abs().max())
        return [
            Claim(
                Text("text tokens: largest difference from 1-D RoPE", "文字词元：与一维 RoPE 的最大差"),
                text,
                Text("should be 0", "应为 0"),
                text < 1e-12,
            ),
            Claim(
                Text(
                    "scores, time, rows and columns all moved on: largest change",
                    "时间、行、列一起移动：分数的最大变化",
                ),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-9,
            ),
            Claim(
                Text("pairs for time, rows and columns together", "时间、行、列的维度对合计"),
                sum(self.sections(e)),
                Text("{a} + {b} + {c}", "{a} + {b} + {c}").filled(**dict(zip("abc", self.sections(e), strict=True))),
                sum(self.sections(e)) == e // 2,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        if picture == "grid":
            return rf"\frac{{1}}{{d/2}}\sum_i \cos(\Delta_{{a(i)}}\,\omega_i)\Big|_{{({row},{col})}} = \mathbf{{{value:.6f}}}"
        w = float(self.inv_freq(dims.d_head)[col])
        time, rows, _ = self.sections(dims.d_head)
        axis = "time" if col < time else "row" if col < time + rows else "column"
        name = {"cos": r"\cos", "sin": r"\sin", "angle": ""}[picture]
        return rf"{name}({row}\cdot {w:.6g} = {row * w:.6g}) = \mathbf{{{value:.6f}}},\quad \mathrm{{{axis}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        head = f"""import torch
from posviz import encodings
from posviz.encodings import mrope

spec = {self.call()}
"""
        if picture == "grid":
            rows = f'theta = spec.angles(mrope.ids([("image", (1, H, W))]), {dims.d_head})  # (H * W, pairs): time, row, column'
            size = self.grid_height, self.grid_width
            return head + grid_snippet(rows, "theta", "(theta - chosen).cos().mean(-1)", patch, size)
        last = {
            "cos": "values = theta.cos()",
            "sin": "values = theta.sin()",
            "angle": "values = torch.remainder(theta + torch.pi, 2 * torch.pi) - torch.pi  # wrapped to [-pi, pi)",
        }[picture]
        return (
            head + f"theta = spec.angles(torch.arange({length}), {dims.d_head})  # text: time = row = column\n{last}\n"
        )


def ids(pieces: Sequence[tuple[str, int | tuple[int, int, int]]]) -> torch.Tensor:
    """(len, 3) time, row, column of a sequence of ("text", tokens), ("image", (1, h, w)) or ("video", (t, h, w)).

    Text counts on in all three; a picture starts where the text stopped, and the text after it starts
    behind the largest number used.
    """
    start, found = 0, [torch.empty(0, 3, dtype=torch.int64)]
    for what, size in pieces:
        if what == "text":
            count = whole_number("tokens", size, 0, MAX_TOKENS)
            block = torch.arange(count)[:, None].expand(-1, 3)
        elif what in ("image", "video"):
            if not isinstance(size, tuple | list) or len(size) != 3:
                raise Refusal(
                    Text(
                        "the size of a picture must be (time, rows, columns), got {got}",
                        "图像的大小必须是（时间、行、列），现在是 {got}",
                    ),
                    field="pieces",
                    got=shown(size),
                )
            t, h, w = (whole_number("grid", n, 1, 4096) for n in size)
            axes = torch.meshgrid(torch.arange(t), torch.arange(h), torch.arange(w), indexing="ij")
            block = torch.stack([axis.flatten() for axis in axes], dim=-1)
        else:
            raise Refusal(
                Text(
                    "a piece must be text, image or video, got {got}", "片段只能是 text、image 或 video，现在是 {got}"
                ),
                field="pieces",
                got=shown(what),
            )
        found.append(block + start)
        start += int(block.max()) + 1 if len(block) else 0
    return torch.cat(found)


class _Module(PositionModule):
    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.spec.rotate(q, q_pos), self.spec.rotate(k, k_pos)
