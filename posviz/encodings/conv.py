"""Position from a convolution: Baevski et al. 2020, wav2vec 2.0, arXiv 2006.11477, section 2."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    Model,
    Paper,
    PositionModule,
    Positions,
    check_model_width,
    knob,
    seeded_normal,
)
from posviz.types import Dims, Text


@dataclass(frozen=True, kw_only=True)
class Conv(Encoding):
    """x + GELU(Conv1d(x)): a wide convolution looks at the neighbours; only the ends tell where one is.

    An even kernel K sees K/2 before and K/2 - 1 after. Untrained: N(0, 4 / (K d_model)), bias 0, as wav2vec
    2.0 starts; its weight normalisation changes how it trains, not what it computes at the start.
    """

    name: str = field(default="conv", init=False)
    kernel: int = knob(
        128,
        Text("kernel width", "卷积核宽度"),
        Text("How many neighbours are seen; wav2vec 2.0 takes 128.", "看多少个邻居；wav2vec 2.0 取 128。"),
        low=2,
        high=256,
    )
    groups: int = knob(
        16,
        Text("groups", "分组数"),
        Text("d_model is cut into so many parts that do not mix.", "d_model 分成互不相混的几组。"),
        low=1,
        high=16,
    )

    kind: ClassVar[str] = "additive"
    title: ClassVar[Text] = Text("convolution", "卷积")
    summary: ClassVar[Text] = Text(
        "A wide convolution over the embeddings is added to them. It sees which neighbours stand where, so it is "
        "relative; absolute position shows only at the ends. It looks ahead, whatever the mask. Before training it is noise.",
        "对词嵌入做一次宽卷积，再加回去。它看得见哪个邻居在哪边，所以是相对的；绝对位置只在两端看得出来。不管有没有掩码，它都看得到后面。训练之前只是噪声。",
    )
    formula: ClassVar[str] = r"x_p + \mathrm{GELU}\!\left(\sum_{j} W_j\,x_{p+j} + b\right),\quad -K/2 \le j < K/2"
    paper: ClassVar[Paper] = Paper(
        "Baevski et al.",
        2020,
        "wav2vec 2.0: A Framework for Self-Supervised Learning of Speech Representations",
        "2006.11477",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=False, unbounded=True, directional=True, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("table",)
    sharing: ClassVar[str] = "model"
    starts: ClassVar[Text] = Text(
        "The kernel starts as N(0, 4/(K·d_model)), its bias at 0, as in wav2vec 2.0.",
        "卷积核从 N(0, 4/(K·d_model)) 开始，偏置为 0，与 wav2vec 2.0 相同。",
    )
    looks_ahead: ClassVar[bool] = True
    used_by: ClassVar[tuple[Model, ...]] = (Model("wav2vec 2.0", "2006.11477"), Model("HuBERT", "2106.07447"))

    def fits(self, dims: Dims) -> None:
        check_model_width(self, dims, self.groups)

    def width_step(self, n_heads: int) -> int:
        return math.lcm(n_heads, self.groups)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        k = self.kernel
        with torch.no_grad():
            ones = torch.ones(3 * k, module.dims.d_model)
            flat = module.embed(ones) - ones
        inner = flat[k : 2 * k]
        spread = float((inner - inner[:1]).abs().max())
        edge = float((flat[0] - inner[0]).abs().max())
        reach = k // 2
        probe = torch.zeros(2 * k + 1, module.dims.d_model)
        with torch.no_grad():
            still = module.embed(probe) - probe
            probe[k] = 1.0
            seen = ((module.embed(probe) - probe - still).abs().amax(1) > 0).nonzero().flatten()
        before, after = k - int(seen.min()), int(seen.max()) - k
        return [
            Claim(
                Text(
                    "equal tokens, far from the ends: largest difference between positions",
                    "词元全同、离两端足够远：位置之间的最大差",
                ),
                spread,
                Text("should be 0", "应为 0"),
                spread < 1e-4,
            ),
            Claim(
                Text(
                    "equal tokens: first position minus an inner one, largest", "词元全同：第一个位置与中间位置的最大差"
                ),
                edge,
                Text("above 0: the end is seen", "大于 0：看得见端点"),
                edge > 1e-4,
            ),
            Claim(
                Text(
                    "how far a token reaches, outputs before and after it together",
                    "一个词元影响到多远（前后输出合计）",
                ),
                before + after + 1,
                Text("kernel width {k}", "卷积核宽度 {k}").filled(k=k),
                before + after + 1 == k and after == reach,
            ),
        ]

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len, generator)

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        low, high = row - self.kernel // 2, row + (self.kernel - 1) // 2
        return (
            rf"\mathrm{{GELU}}\Big(\sum_{{j={low}}}^{{{high}}} W_{{j-{row}}}\,x_j + b\Big)_{{{col}}}"
            rf"\Big|_{{x=(1,\dots,1)}} = \mathbf{{{value:.6f}}}"
        )

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        part = dims.d_model // self.groups
        return f"""import torch
from torch.nn import functional

d, length, kernel, groups = {dims.d_model}, {length}, {self.kernel}, {self.groups}
generator = torch.Generator().manual_seed({seed})
weight = (torch.randn((d, {part}, kernel), generator=generator) * {self.std(dims.d_model)!r}).double()
x = torch.ones(1, d, length, dtype=torch.float64)                    # equal tokens: only the ends differ
heard = functional.conv1d(x, weight, padding=kernel // 2, groups=groups)[0, :, :length]
values = functional.gelu(heard).T                                    # (length, d)
"""

    def std(self, d_model: int) -> float:
        """Of the start weights, wav2vec 2.0: 2 / sqrt(kernel * d_model)."""
        return 2 / math.sqrt(self.kernel * d_model)


class _Module(PositionModule):
    def __init__(self, spec: Conv, dims: Dims, max_len: int, generator: torch.Generator) -> None:
        super().__init__(spec, dims, max_len)
        shape = (dims.d_model, dims.d_model // spec.groups, spec.kernel)
        self.weight = seeded_normal(shape, spec.std(dims.d_model), generator)
        self.offset = nn.Parameter(torch.zeros(dims.d_model))

    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        """positions do not matter: the convolution sees the order of the rows."""
        length = x.shape[-2]
        flat = x.reshape(-1, length, x.shape[-1]).mT  # (B, d, L)
        heard = functional.conv1d(
            flat, self.weight.to(x), self.offset.to(x), padding=self.spec.kernel // 2, groups=self.spec.groups
        )[..., :length]  # an even kernel gives one too many at the end
        return x + functional.gelu(heard).mT.reshape(x.shape)

    def sample(self, length: int) -> torch.Tensor:
        return torch.ones(length, self.dims.d_model, dtype=torch.float64)
