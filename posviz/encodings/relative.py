"""What Transformer-XL and Conformer share: (q + u).k + (q + v).W R_(m-n) with sinusoids R of the distance."""

from typing import ClassVar

import torch

from posviz.encodings.base import (
    Capabilities,
    Claim,
    Encoding,
    PositionModule,
    Positions,
    check_model_width,
    relative_positions,
)
from posviz.rotation import angles, inv_freq, whole_tensor
from posviz.types import Dims, Text


class RelativeWaves(Encoding):
    """A spec with a ``base``; subclasses say how R is laid out (``laid_out``) and how W, u and v start.

    u, v: one vector a head, the same for every query. Full attention needs 2L - 1 rows of R, causal attention L.
    """

    kind: ClassVar[str] = "bias"
    capabilities: ClassVar[Capabilities] = Capabilities(
        trainable=True, relative=True, unbounded=True, directional=True, content=True
    )
    pictures: ClassVar[tuple[str, ...]] = ("bias",)
    sharing: ClassVar[str] = "layer"

    def fits(self, dims: Dims) -> None:
        check_model_width(self, dims, 2)

    def width_step(self, n_heads: int) -> int:
        return n_heads * (1 + n_heads % 2)

    def laid_out(self, theta: torch.Tensor) -> torch.Tensor:
        """(n, d/2) angles -> (n, d) their sines and cosines in this encoding's order."""
        raise NotImplementedError

    def waves(self, distances: torch.Tensor, d_model: int) -> torch.Tensor:
        """R for query - key distances: (n,) whole numbers -> (n, d_model) float64."""
        return self.laid_out(angles(whole_tensor(distances), inv_freq(d_model, self.base)))

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        dims = module.dims
        q, k = (torch.randn(dims.n_heads, 3, dims.d_head, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
        with torch.no_grad():
            here, there = (module.bias(q, k, range(at, at + 3), range(at, at + 3)) for at in (0, 10_000))
            apart = [module.bias(q, k[:, :1], range(3), [key])[:, :1] for key in (1, 0)]
        change = float((here - there).abs().max())
        numbers = sum(p.numel() for p in module.parameters())
        return [
            Claim(
                Text(
                    "bias of three tokens, here and 10,000 positions further on: largest change",
                    "三个词元整体平移 10,000 位时偏置的最大变化",
                ),
                change,
                Text("should be 0", "应为 0"),
                change < 1e-5,
            ),
            Claim(
                Text("bias of the same key after the query, minus before it", "同一个键在查询之后与之前，偏置之差"),
                float((apart[0] - apart[1]).abs().max()),
                Text("not 0: the direction counts", "不为 0：方向有别"),
                float((apart[0] - apart[1]).abs().max()) > 0,
            ),
            Claim(
                Text("trainable numbers, d² + 2d", "可训练的数，d² + 2d"),
                numbers,
                Text("{d}² + 2 × {d}", "{d}² + 2 × {d}").filled(d=dims.d_model),
                numbers == dims.d_model**2 + 2 * dims.d_model,
            ),
        ]

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        return (
            rf"\frac{{u_{{{head}}}^\top k + (q+v_{{{head}}})^\top W R_{{{row}-{col}}}}}{{\sqrt{{{dims.d_head}}}}}"
            rf"\Big|_{{q=k=(1,\dots,1)}} = \mathbf{{{value:.6f}}}"
        )

    def relative_snippet(self, dims: Dims, length: int, starts: str, laid_out: str, imports: str = "") -> str:
        """The snippet of the bias. starts: the lines that draw w_r, u and v; laid_out: R from ``theta``."""
        return f"""{imports}import torch

d, H, e, length = {dims.d_model}, {dims.n_heads}, {dims.d_head}, {length}
{starts}
distance = torch.arange(-length + 1, length)                             # query - key
omega = {self.base!r} ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
theta = distance[:, None] * omega
waves = {laid_out}
r = (waves @ w_r).unflatten(-1, (H, e))                                  # (2 length - 1, H, e)
# for queries and keys of ones
profile = (torch.einsum("nhe,he->hn", r, 1 + v) + u.sum(-1, keepdim=True)) * e**-0.5
m, n = torch.arange(length)[:, None], torch.arange(length)[None, :]
values = profile[:, m - n + length - 1]                                  # (H, length, length)
"""


class RelativeModule(PositionModule):
    """w_r (d_model, d_model): r = R @ w_r; u, v (n_heads, d_head). The spec's ``waves`` make R."""

    def __init__(self, spec: Encoding, dims: Dims, max_len: int, w_r, u, v) -> None:
        super().__init__(spec, dims, max_len)
        self.w_r, self.u, self.v = w_r, u, v

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        # Every distance once, then pick: never an (Lq, Lk, d_head) tensor.
        distances, index = torch.unique(-relative_positions(q_pos, k_pos), return_inverse=True)
        r = self.spec.waves(distances, self.dims.d_model).to(q) @ self.w_r.to(q)  # (n, d)
        r = r.unflatten(-1, (self.dims.n_heads, -1)).transpose(0, 1)  # (n, H, e) -> (H, n, e)
        by_distance = (q + self.v.to(q)[:, None]) @ r.mT  # (..., H, Lq, n)
        position = by_distance.gather(-1, index.expand(*q.shape[:-1], -1))
        content = (k @ self.u.to(k)[..., None]).mT  # (..., H, 1, Lk)
        return (position + content) * self.spec.scale(q.shape[-1])
