"""Sinusoidal table of Vaswani et al. 2017, arXiv 1706.03762, section 3.5."""

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
    knob,
)
from posviz.rotation import angles, as_positions, inv_freq, shift_map, wavelengths
from posviz.types import MAX_D_MODEL, Dims, Refusal, Text


@dataclass(frozen=True, kw_only=True)
class Sinusoidal(Encoding):
    """PE(p, 2i) = sin(p w_i), PE(p, 2i+1) = cos(p w_i), w_i = base^(-2i/d).

    layout: "interleaved" as above, or "halves": all sines, then all cosines (a column permutation).
    "tensor2tensor": halves with w_i = base^(-i/(d/2-1)), so that the last wavelength is exactly 2 pi base;
    "fairseq": the same, but position 0 is row 2, behind the padding row 1 (M2M-100 looks up the same rows).
    """

    name: str = field(default="sinusoidal", init=False)
    base: float = base_knob()
    layout: str = knob(
        "interleaved",
        Text("layout", "排列"),
        Text(
            "interleaved: sin, cos, sin, cos, …; halves: all sines, then all cosines; tensor2tensor: halves, "
            "the slowest wave exactly 2π·base long; fairseq: the same, counted from 2.",
            "交错（interleaved）：sin、cos 交替；两半（halves）：前一半全是 sin，后一半全是 cos；"
            "tensor2tensor：两半，最慢的波长正好是 2π·base；fairseq：同上，但从 2 数起。",
        ),
        choices=("interleaved", "halves", "tensor2tensor", "fairseq"),
        names=(
            Text("interleaved", "交错"),
            Text("halves", "两半"),
            Text("tensor2tensor", "tensor2tensor"),
            Text("fairseq", "fairseq"),
        ),
    )

    kind: ClassVar[str] = "additive"
    title: ClassVar[Text] = Text("sinusoidal", "正弦")
    summary: ClassVar[Text] = Text(
        "Every pair of dimensions is a clock hand that turns with its own speed; the table is computed, not learned.",
        "每两维是一根指针，各有各的转速；整张表由公式算出，不用训练。",
    )
    formula: ClassVar[str] = (
        r"PE_{p,2i}=\sin\frac{p}{\mathrm{base}^{2i/d}},\quad PE_{p,2i+1}=\cos\frac{p}{\mathrm{base}^{2i/d}}"
    )
    paper: ClassVar[Paper] = Paper("Vaswani et al.", 2017, "Attention Is All You Need", "1706.03762")
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=False, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("table",)
    used_by: ClassVar[tuple[Model, ...]] = (
        Model("Transformer", "1706.03762"),
        Model("M2M-100", "2010.11125"),
        Model("Whisper (encoder)", "2212.04356"),
    )

    def fits(self, dims: Dims) -> None:
        if dims.d_model % 2:  # then n_heads is odd as well, and divides this even neighbour
            near = dims.d_model + dims.n_heads
            raise Refusal(
                Text(
                    "`d_model` must be even for sinusoidal (sines and cosines come in pairs), got {got}; try {near}",
                    "正弦编码要求 `d_model` 为偶数（正弦、余弦成对出现），现在是 {got}；可以试试 {near}",
                ),
                field="d_model",
                got=dims.d_model,
                near=near if near <= MAX_D_MODEL else dims.d_model - dims.n_heads,
            )

        if dims.d_model == 2 and self.stretched:
            raise Refusal(
                Text(
                    "`d_model` must be at least 4 for the layout {layout} (it divides by d/2 − 1), got 2; try 4",
                    "{layout} 排列要求 `d_model` 不小于 4（要除以 d/2 − 1），现在是 2；可以试试 4",
                ),
                field="d_model",
                layout=self.layout,
            )

    def width_step(self, n_heads: int) -> int:
        return math.lcm(n_heads, 2)

    @property
    def stretched(self) -> bool:
        """Whether the frequencies end exactly at 1 / base."""
        return self.layout in ("tensor2tensor", "fairseq")

    @property
    def start(self) -> int:
        """The row of the table that belongs to position 0."""
        return 2 if self.layout == "fairseq" else 0

    def columns(self, d_model: int) -> tuple[torch.Tensor, torch.Tensor]:
        """For each column its frequency (d_model,) float64 and whether it is a cosine (d_model,) bool."""
        self.fits(Dims(d_model=d_model, n_heads=1))
        half = d_model // 2
        if self.stretched:
            exponent = torch.arange(half, dtype=torch.float64) / (half - 1)
            frequencies = torch.pow(torch.tensor(self.base, dtype=torch.float64), -exponent)
        else:
            frequencies = inv_freq(d_model, self.base)
        if self.layout == "interleaved":
            return frequencies.repeat_interleave(2), torch.arange(d_model) % 2 == 1
        return frequencies.repeat(2), torch.arange(d_model) >= half

    def table(self, positions: Positions, d_model: int) -> torch.Tensor:
        """Rows of the table: (len,) whole positions -> (len, d_model) float64."""
        frequencies, is_cos = self.columns(d_model)
        theta = angles(as_positions(positions) + self.start, frequencies)
        theta[:, is_cos], theta[:, ~is_cos] = theta[:, is_cos].cos(), theta[:, ~is_cos].sin()  # each cell once
        return theta

    def shift_error(self, k: int, length: int, d_model: int) -> float:
        """Largest |PE(p+k) - M_k PE(p)| over at most 512 positions spread over 0 .. length-1."""
        p = torch.linspace(0, length - 1, min(length, 512), dtype=torch.float64).round().long()
        turned = self.table(p, d_model) @ torch.from_numpy(shift_map(k, *self.columns(d_model))).T
        return float((turned - self.table(p + k, d_model)).abs().max())

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        d_model = module.dims.d_model
        norm = float((self.table(range(length), d_model).square().sum(1) - d_model / 2).abs().max())
        error = self.shift_error(5, length, d_model)
        frequencies, _ = self.columns(d_model)
        longest = float(wavelengths(frequencies).max())
        formula = "2π · base" if self.stretched else "2π · base^((d−2)/d)"
        return [
            Claim(
                Text("‖PE(p)‖² − d/2, largest over all positions", "‖PE(p)‖² − d/2，所有位置上的最大值"),
                norm,
                Text("should be 0", "应为 0"),
                norm < 1e-9,
            ),
            Claim(
                Text(
                    "PE(p+5) − M₅ PE(p), largest cell: one fixed turn moves every position by 5",
                    "PE(p+5) − M₅ PE(p) 的最大值：同一个旋转把每个位置移动 5",
                ),
                error,
                Text("should be 0", "应为 0"),
                error < 1e-9,
            ),
            Claim(
                Text(
                    f"longest wavelength in positions, {formula}",
                    f"最长的波长（位置数），{formula}",
                ),
                longest,
                Text("{n} positions: {turns} turns", "{n} 个位置转 {turns} 圈").filled(
                    n=length, turns=f"{length / longest:.3g}"
                ),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        frequencies, is_cos = self.columns(dims.d_model)
        d = dims.d_model
        row += self.start
        if self.layout == "interleaved":
            exponent = f"{2 * (col // 2)}/{d}"
        else:
            exponent = f"{col % (d // 2)}/{d // 2 - 1}" if self.stretched else f"{2 * (col % (d // 2))}/{d}"
        name = r"\cos" if is_cos[col] else r"\sin"
        period = 1 / float(frequencies[col])
        return (
            rf"PE({row - self.start}, {col}) = {name}\!\left({row} \,/\, {self.base:g}^{{{exponent}}}\right)"
            rf" = {name}\!\left({row} / {period:.6g}\right) = {name}({row * float(frequencies[col]):.6g})"
            rf" = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        if self.layout == "interleaved":
            join = "values = torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)"
        else:
            join = "values = torch.cat([theta.sin(), theta.cos()], dim=-1)"
        exponent = "-i / (d_model - 2)" if self.stretched else "-i / d_model"
        rows = f"torch.arange({self.start}, length + {self.start}," if self.start else "torch.arange(length,"
        return f"""import torch

d_model, length, base = {dims.d_model}, {length}, {self.base!r}
i = torch.arange(0, d_model, 2, dtype=torch.float64)
omega = base ** ({exponent})                                  # (d_model/2,) radians a position
theta = {rows} dtype=torch.float64)[:, None] * omega  # (length, d_model/2)
{join}  # (length, d_model)
"""


class _Module(PositionModule):
    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        at = torch.arange(x.shape[-2]) if positions is None else as_positions(positions)
        return x + self.spec.table(at, x.shape[-1]).to(x)
