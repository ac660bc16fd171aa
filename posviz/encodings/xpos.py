"""Rotation with a decay: Sun et al. 2022, A Length-Extrapolatable Transformer, arXiv 2212.10554, section 3.2."""

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
from posviz.rotation import PAIRINGS, angles, as_positions, inv_freq, pair_dims, rotate
from posviz.types import Dims, Refusal, Text

GAMMA = 0.4  # the paper's: zeta_i = (2i/d + 0.4) / 1.4


@dataclass(frozen=True, kw_only=True)
class XPos(Encoding):
    """RoPE, and pair i of the query times z_i^(p/S), of the key times z_i^(-p/S), z_i = (2i/d + 0.4) / 1.4.

    In a product only z_i^((m-n)/S) is left: earlier keys fade, fast pairs first. Later keys grow instead,
    so it is made for the causal mask. The factors are powers of the position itself: a dtype runs out of
    range far out (float32 near position 36,000 for S = 512), which is refused.
    """

    name: str = field(default="xpos", init=False)
    base: float = base_knob()
    scale_base: int = knob(
        512,
        Text("decay length S", "衰减长度 S"),
        Text("Every S positions pair i shrinks by z_i once more.", "每隔 S 个位置，第 i 对再乘一次 z_i。"),
        low=256,
        high=8192,
    )
    pairing: str = knob(
        "interleaved",
        Text("pairing", "配对"),
        Text(
            "interleaved: dimensions 2i and 2i+1 (torchscale); half: i and i + width/2.",
            "相邻（interleaved）：第 2i 维配第 2i+1 维（torchscale）；前后（half）：第 i 维配第 i + 宽度/2 维。",
        ),
        choices=PAIRINGS,
        names=(Text("half", "前后"), Text("interleaved", "相邻")),
    )

    kind: ClassVar[str] = "rotary"
    title: ClassVar[Text] = Text("xPos", "xPos")
    summary: ClassVar[Text] = Text(
        "RoPE whose pairs also shrink with distance, fast pairs more: earlier keys fade instead of rippling. "
        "Keys after the query grow, so it wants the causal mask.",
        "旋转的同时，每对维度随距离缩小，转得快的缩得多：越早的键越弱，而不是时强时弱地起伏。查询之后的键反而变大，所以要配因果掩码。",
    )
    formula: ClassVar[str] = (
        r"q_m^\top k_n \to \sum_i \zeta_i^{(m-n)/S}\,(q_m^{(i)})^\top R_{(n-m)\theta_i}\,k_n^{(i)},"
        r"\quad \zeta_i = \frac{2i/d+0.4}{1.4}"
    )
    paper: ClassVar[Paper] = Paper("Sun et al.", 2022, "A Length-Extrapolatable Transformer", "2212.10554")
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("cos", "sin", "angle")
    used_by: ClassVar[tuple[Model, ...]] = (Model("Kosmos-1", "2302.14045"), Model("RetNet", "2307.08621"))

    def fits(self, dims: Dims) -> None:
        check_head_width(self, dims.d_head, 2, dims)

    def width_step(self, n_heads: int) -> int:
        return 2 * n_heads

    def inv_freq(self, d_head: int, seq_len: int | None = None) -> torch.Tensor:
        """w_i = base^(-2i / d_head), (d_head/2,) float64."""
        check_head_width(self, d_head, 2)
        return inv_freq(d_head, self.base)

    def zeta(self, d_head: int) -> torch.Tensor:
        """(d_head/2,) float64, from 0.4/1.4 for the fastest pair towards 1 for the slowest."""
        i = torch.arange(d_head // 2, dtype=torch.float64)
        return (2 * i / d_head + GAMMA) / (1 + GAMMA)

    def turn(self, x: torch.Tensor, positions: Positions, power: int) -> torch.Tensor:
        """(..., len, d_head) turned, times zeta^(power p / S); power 1 for queries, -1 for keys."""
        at = as_positions(positions)
        turned = rotate(x, angles(at, self.inv_freq(x.shape[-1])), self.pairing)
        exponent = power * at.to(torch.float64)[:, None] / self.scale_base
        factor = (self.zeta(x.shape[-1]) ** exponent).to(x.dtype)  # (len, pairs)
        if at.numel() and not bool((torch.isfinite(factor) & (factor > 0)).all()):
            raise Refusal(
                Text(
                    "xPos multiplies by powers of the position that {dtype} cannot hold at position {p}; "
                    "take float64, or a larger `scale_base` than {s}",
                    "xPos 要乘以位置的幂，位置 {p} 处超出了 {dtype} 的范围；请用 float64，或把 `scale_base` 调到大于 {s}",
                ),
                field="scale_base",
                dtype=str(x.dtype).removeprefix("torch."),
                p=int(at.max()),
                s=self.scale_base,
            )
        wide = torch.empty(factor.shape[0], x.shape[-1], dtype=x.dtype)
        for dims in pair_dims(x.shape[-1], self.pairing):
            wide[:, dims] = factor
        return turned * wide

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        e = module.dims.d_head
        q, k = (torch.randn(1, e, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1))

        def score(m: int, n: int) -> float:
            return float(self.turn(q, [m], 1) @ self.turn(k, [n], -1).T)

        change = abs(score(5, 2) - score(4005, 4002))
        fastest = float(self.zeta(e)[0])
        return [
            Claim(
                Text(
                    "score of q and k 3 apart, here and 4,000 positions further on, change",
                    "相隔 3 的 q 与 k，整体平移 4,000 位时分数的变化",
                ),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-6,
            ),
            Claim(
                Text("fastest pair: what is left of it S positions back", "最快的一对：往回 S 个位置还剩多少"),
                fastest,
                Text("0.4 / 1.4", "0.4 / 1.4"),
                abs(fastest - 0.4 / 1.4) < 1e-12,
            ),
            Claim(
                Text("position at which float32 runs out of range", "float32 超出范围的位置"),
                float(
                    self.scale_base
                    * torch.log(torch.tensor(torch.finfo(torch.float32).max, dtype=torch.float64))
                    / -torch.log(self.zeta(e)[0])
                ),
                Text("max_len is {n}", "max_len 是 {n}").filled(n=module.max_len),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        w = float(self.inv_freq(dims.d_head)[col])
        zeta = float(self.zeta(dims.d_head)[col])
        angle = rf"{row}\cdot {self.base:g}^{{-{2 * col}/{dims.d_head}}}"
        name = {"cos": r"\cos", "sin": r"\sin", "angle": ""}[picture]
        tail = (
            rf"\pmod{{2\pi}},\ \zeta_{{{col}}} = {zeta:.4f}"
            if picture == "angle"
            else rf",\ \zeta_{{{col}}} = {zeta:.4f}"
        )
        return rf"{name}({angle} = {row * w:.6g}) = \mathbf{{{value:.6f}}}{tail}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        last = {
            "cos": "values = theta.cos()",
            "sin": "values = theta.sin()",
            "angle": "values = torch.remainder(theta + torch.pi, 2 * torch.pi) - torch.pi  # wrapped to [-pi, pi)",
        }[picture]
        return f"""import torch

d_head, length, base, S = {dims.d_head}, {length}, {self.base!r}, {self.scale_base}
i = torch.arange(0, d_head, 2, dtype=torch.float64)
omega = base ** (-i / d_head)                                       # (pairs,) radians a position
p = torch.arange(length, dtype=torch.float64)[:, None]
theta = p * omega                                                   # (length, pairs)
zeta = (i / d_head + {GAMMA}) / {1 + GAMMA}
shrink = zeta ** (p / S)                                            # times the query; the key is divided by it
{last}
"""


class _Module(PositionModule):
    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.spec.turn(q, q_pos, 1), self.spec.turn(k, k_pos, -1)
