"""Sinusoids as a bias: Chi et al. 2022, Sandwich, arXiv 2212.10356, section 5."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Paper,
    PositionModule,
    Positions,
    base_knob,
    knob,
    relative_positions,
)
from posviz.rotation import angles
from posviz.types import Dims, Refusal, Text


@dataclass(frozen=True, kw_only=True)
class Sandwich(Encoding):
    """sum_i cos((m-n) w_i) / (8h/H), i = 1 .. width/2: what two sinusoidal positions have in common, as a bias.

    w_i = base^(-2i/width), from i = 1. Heads h = 1 .. H as in ALiBi. NeMo subtracts width/2 as well,
    a constant that the softmax does not see.
    """

    name: str = field(default="sandwich", init=False)
    base: float = base_knob()
    width: int = knob(
        128,
        Text("width of the sinusoids", "正弦编码的宽度"),
        Text("Independent of d_model; the paper takes 128.", "与 d_model 无关；论文取 128。"),
        low=2,
        high=1024,
    )

    kind: ClassVar[str] = "bias"
    title: ClassVar[Text] = Text("Sandwich", "Sandwich")
    summary: ClassVar[Text] = Text(
        "The dot product of two sinusoidal positions is added to the score, weaker from head to head: "
        "a bias with a temporal decay and nothing to train. It cannot tell left from right.",
        "把两个正弦位置编码的点积加到分数上，强度逐头减弱：随距离衰减，不用训练。它分不清左右。",
    )
    formula: ClassVar[str] = r"b_h(m,n) = \frac{1}{8h/H}\sum_{i=1}^{\bar d/2}\cos\frac{m-n}{\mathrm{base}^{2i/\bar d}}"
    paper: ClassVar[Paper] = Paper(
        "Chi et al.",
        2022,
        "Dissecting Transformer Length Extrapolation via The Lens of Receptive Field Analysis",
        "2212.10356",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=False, relative=True, unbounded=True, directional=False
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)

    def check(self) -> None:
        if self.width % 2:
            raise Refusal(
                Text(
                    "`width` of Sandwich must be even, since sinusoids come in pairs, got {got}",
                    "Sandwich 的 `width` 必须是偶数，因为正弦成对出现，现在是 {got}",
                ),
                field="width",
                got=self.width,
            )

    @property
    def frequencies(self) -> torch.Tensor:
        """w_i for i = 1 .. width // 2, float64."""
        exponent = 2 * torch.arange(1, self.width // 2 + 1, dtype=torch.float64) / self.width
        return torch.pow(torch.tensor(self.base, dtype=torch.float64), -exponent)

    def weakening(self, n_heads: int) -> torch.Tensor:
        """8h/H for h = 1 .. H, float64."""
        return 8 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads

    def kernel(self, distances: torch.Tensor) -> torch.Tensor:
        """sum_i cos(k w_i), float64; each distance is computed once."""
        found, index = torch.unique(distances.abs(), return_inverse=True)
        return angles(found, self.frequencies).cos().sum(-1)[index]

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        curve = self.kernel(torch.arange(length))
        rises = int((curve.diff() > 1e-9).sum())
        return [
            Claim(
                Text("sum of the waves at distance 0", "距离 0 处的波之和"),
                float(curve[0]),
                Text("width / 2 = {n}", "宽度 / 2 = {n}").filled(n=self.width // 2),
                abs(float(curve[0]) - self.width // 2) < 1e-9,
            ),
            Claim(
                Text("largest value at another distance, minus that", "其他距离上的最大值减去它"),
                float(curve[1:].max() - curve[0]) if length > 1 else float("nan"),
                Text("below 0", "小于 0"),
                bool((curve[1:] < curve[0]).all()),
            ),
            Claim(
                Text("steps at which the bias rises again", "偏置又上升的步数"),
                rises,
                Text("of {n}: it ripples", "共 {n} 步：有起伏").filled(n=max(0, length - 1)),
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        weak = float(self.weakening(dims.n_heads)[head])
        total = float(self.kernel(torch.tensor([col - row]))[0])
        return (
            rf"b_{{{head}}}({row}, {col}) = \frac{{1}}{{{weak:g}}}\sum_i \cos({row - col}\,\omega_i)"
            rf" = \frac{{{total:.5f}}}{{{weak:g}}} = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        return f"""import torch

H, length, width, base = {dims.n_heads}, {length}, {self.width}, {self.base!r}
i = torch.arange(1, width // 2 + 1, dtype=torch.float64)
omega = base ** (-2 * i / width)
distance = torch.arange(length, dtype=torch.float64)
kernel = (distance[:, None] * omega).cos().sum(-1)              # (length,)
weaker = 8 * torch.arange(1, H + 1, dtype=torch.float64) / H
n = torch.arange(length)
values = kernel[(n[None, :] - n[:, None]).abs()] / weaker[:, None, None]  # (H, length, length)
"""


class _Module(PositionModule):
    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        kernel = self.spec.kernel(relative_positions(q_pos, k_pos))
        return (kernel / self.spec.weakening(self.dims.n_heads)[:, None, None]).to(q)  # (H, Lq, Lk)
