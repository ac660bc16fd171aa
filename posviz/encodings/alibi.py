"""Attention with linear biases: Press et al. 2021, ALiBi, arXiv 2108.12409."""

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
)
from posviz.types import MAX_HEADS, Dims, Text, whole_number


@dataclass(frozen=True, kw_only=True)
class Alibi(Encoding):
    """score + slope_h (n - m): the further a key lies back, the less it counts.

    causal: the paper's form, meaningful for keys up to the query only. Otherwise the symmetric form
    -slope_h |n - m| for full attention, which knows distance but not direction. Below the diagonal
    the two are equal.
    """

    name: str = field(default="alibi", init=False)
    causal: bool = knob(
        False,
        Text("causal form", "因果形式"),
        Text(
            "On: slope·(n−m), the paper's form, needs the causal mask. Off: −slope·|n−m|, distance without direction.",
            "开：slope·(n−m)，论文的形式，需要因果掩码。关：−slope·|n−m|，只有远近，没有方向。",
        ),
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("ALiBi", "ALiBi")
    summary: ClassVar[Text] = Text(
        "Every head subtracts a penalty that grows with distance, each with its own slope. "
        "The symmetric form cannot tell left from right: a sentence read backwards looks the same.",
        "每个头按距离扣分，斜率各不相同。对称形式分不清左右：倒着读的句子看起来一样。",
    )
    formula: ClassVar[str] = r"b_h(m, n) = -s_h\,|m-n|,\quad s_h = 2^{-8h/H}"
    paper: ClassVar[Paper] = Paper("Press et al.", 2021, "Train Short, Test Long", "2108.12409")
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=False
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    used_by: ClassVar[tuple[Model, ...]] = (Model("BLOOM", "2211.05100"), Model("BloombergGPT", "2303.17564"))

    @property
    def needs_causal_mask(self) -> bool:
        return self.causal

    def slopes(self, n_heads: int) -> torch.Tensor:
        """(n_heads,) float64, as the authors' code: 2^(-8h/H) for powers of two.

        Other numbers of heads take the slopes of the power of two below, then every other one of
        the power above, so they do not fall monotonically (that is not a mistake).
        """
        n_heads = whole_number("n_heads", n_heads, 1, MAX_HEADS)
        below = 2 ** int(math.log2(n_heads))

        def geometric(heads: int) -> torch.Tensor:
            return torch.pow(2.0, -8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)

        return torch.cat([geometric(below), geometric(2 * below)[::2][: n_heads - below]])

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        slopes = self.slopes(module.dims.n_heads)
        # exp(-s k) = 1/2 at k = ln 2 / s
        half = math.log(2) / slopes
        # Key 0 seen from every query: (H, length, 1), never a square.
        q, k = (torch.zeros(len(slopes), n, 1, dtype=torch.float64) for n in (length, 1))
        steps = module.bias(q, k, range(length), [0]).diff(dim=1)
        error = float((steps + slopes[:, None, None]).abs().max()) if length > 1 else 0.0
        return [
            Claim(
                Text("steepest head: distance at which a weight halves", "最陡的头：权重减半的距离"),
                float(half.min()),
                Text("ln 2 / {s}", "ln 2 / {s}").filled(s=f"{float(slopes.max()):.4g}"),
            ),
            Claim(
                Text("flattest head: distance at which a weight halves", "最平的头：权重减半的距离"),
                float(half.max()),
                Text("ln 2 / {s}", "ln 2 / {s}").filled(s=f"{float(slopes.min()):.4g}"),
            ),
            Claim(
                Text("one step further back costs the slope: largest deviation", "每远一步正好扣一个斜率：最大偏差"),
                error,
                Text("should be 0", "应为 0"),
                error < 1e-9,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        slope = float(self.slopes(dims.n_heads)[head])
        body = rf"{slope:.6g} \cdot ({col} - {row})" if self.causal else rf"-{slope:.6g} \cdot |{row} - {col}|"
        return rf"b_{{{head}}}({row}, {col}) = {body} = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        slopes = [float(s) for s in self.slopes(dims.n_heads)]
        form = "(n - m)" if self.causal else "-(n - m).abs()"
        mask = "values.masked_fill_(n > m, torch.nan)  # later keys are masked\n" if self.causal else ""
        return f"""import torch

slopes = torch.tensor({slopes}, dtype=torch.float64)
n = torch.arange({length})[None, :]  # keys
m = torch.arange({length})[:, None]  # queries
values = slopes[:, None, None] * {form}  # (n_heads, length, length)
{mask}"""


class _Module(PositionModule):
    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        relative = relative_positions(q_pos, k_pos)
        distance = relative if self.spec.causal else -relative.abs()
        return (self.spec.slopes(self.dims.n_heads)[:, None, None] * distance).to(q)  # (H, Lq, Lk)
