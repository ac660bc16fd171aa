"""A real model's RoPE: the width of its head, its scaling and its trained length, as its config.json says."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from posviz.encodings.base import PositionModule, Positions
from posviz.encodings.rope import Rope
from posviz.rope_scaling import MAX_POSITIONS, Proportional, Scaling
from posviz.rotation import angles, as_positions, rotate, whole_tensor
from posviz.types import Dims, Refusal, Text, whole_number

AXES = ("t", "h", "w")
MAX_D_HEAD = 8192


@dataclass(frozen=True, kw_only=True)
class ModelRope(Rope):
    """RoPE of one kind of layer of one model; unlike :class:`Rope` it knows its ``d_head``.

    d_head: width of the part of a head that RoPE is applied to (DeepSeek's: qk_rope_head_dim).
    scaling: how the frequencies are changed. max_position_embeddings, original_max_position_embeddings:
    the length that the file promises and the one before it was extended, None where it says nothing.
    mrope_section: how many pairs follow time, row and column (M-RoPE), empty without; mrope_interleaved:
    in turns (Qwen3-VL) instead of in bands (Qwen2-VL). layer_type, model_type: as in the file.
    """

    name: str = field(default="model_rope", init=False)
    d_head: int
    scaling: Scaling = Scaling()  # noqa: RUF009, frozen
    max_position_embeddings: int | None = None
    original_max_position_embeddings: int | None = None
    mrope_section: tuple[int, ...] = ()
    mrope_interleaved: bool = False
    layer_type: str = ""
    model_type: str = ""

    pictures: ClassVar[tuple[str, ...]] = ()

    def check(self) -> None:
        whole_number("head_dim", self.d_head, 2, MAX_D_HEAD)
        for name in ("max_position_embeddings", "original_max_position_embeddings"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1, MAX_POSITIONS)
        pairs = len(self.inv_freq())  # refuses widths and lists that do not fit
        self.scaling.attention_factor()
        if self.mrope_section and (len(self.mrope_section) != len(AXES) or sum(self.mrope_section) != pairs):
            raise Refusal(
                Text(
                    "`mrope_section` must be three whole numbers that add up to the {pairs} pairs, got {got}",
                    "`mrope_section` 必须是三个整数，总和等于 {pairs} 对，现在是 {got}",
                ),
                field="mrope_section",
                pairs=pairs,
                got=list(self.mrope_section),
            )

    @property
    def width(self) -> int:
        """How many dimensions of a head take part in pairs."""
        return self.d_head if isinstance(self.scaling, Proportional) else super().rotary_dim(self.d_head)

    @property
    def trained_length(self) -> int | None:
        """The length before extension: the original one where the file has it, else the promised one."""
        return self.original_max_position_embeddings or self.max_position_embeddings

    def rotary_dim(self, d_head: int | None = None) -> int:
        """The same as ``width``; another head is refused."""
        if d_head not in (None, self.d_head):
            raise Refusal(
                Text("this model's `d_head` is {want}, got {got}", "这个模型的 `d_head` 是 {want}，现在是 {got}"),
                field="d_head",
                want=self.d_head,
                got=d_head,
            )
        return self.width

    def fits(self, dims: Dims) -> None:
        self.rotary_dim(dims.d_head)

    def inv_freq(self, seq_len: int | None = None) -> torch.Tensor:
        """(width/2,) float64, scaled for a text of seq_len positions (None: not longer than trained)."""
        if seq_len is not None:
            whole_number("seq_len", seq_len, 1, MAX_POSITIONS)
        return self.scaling.inv_freq(self.width, self.base, seq_len)

    def unscaled(self) -> "ModelRope":
        """The same before scaling; the pairs that rest (proportional) rest here, too."""
        rests = isinstance(self.scaling, Proportional)
        return replace(self, scaling=Proportional(share=self.scaling.share) if rests else Scaling())

    def unscaled_inv_freq(self) -> torch.Tensor:
        """Its frequencies: (width/2,) float64."""
        return self.unscaled().inv_freq()

    def attention_factor(self, seq_len: int | None = None) -> float:
        """What cos and sin are multiplied by; the same for every published scaling at every length."""
        return self.scaling.attention_factor()

    def pair_axes(self) -> torch.Tensor:
        """(pairs,) int64: which axis (0 time, 1 row, 2 column) each pair follows."""
        pairs = torch.arange(self.width // 2)
        if not self.mrope_section:
            return torch.zeros_like(pairs)
        if not self.mrope_interleaved:
            return torch.repeat_interleave(torch.arange(len(AXES)), torch.tensor(self.mrope_section))
        axes = torch.zeros_like(pairs)
        for axis in (1, 2):  # every third pair, as long as the axis has pairs left; time takes the rest
            axes[axis : 3 * self.mrope_section[axis] : 3] = axis
        return axes

    def angles(self, positions: Positions, seq_len: int | None = None) -> torch.Tensor:
        """(len, pairs) float64 radians. positions (len,), or (len, 3) for time, row, column."""
        grid = whole_tensor(positions)
        grid = as_positions(grid, axes=len(AXES)) if grid.dim() == 2 else as_positions(grid)[:, None]
        if seq_len is None and grid.numel():
            seq_len = int(grid.max()) + 1
        frequencies = self.inv_freq(seq_len)
        if grid.shape[1] == 1:
            return angles(grid[:, 0], frequencies)
        return grid[:, self.pair_axes()].to(torch.float64) * frequencies

    def rotate(self, x: torch.Tensor, positions: Positions, seq_len: int | None = None) -> torch.Tensor:
        """(..., len, d_head) turned and, where the scaling says so, lengthened; same shape and dtype."""
        self.rotary_dim(x.shape[-1])
        turned = rotate(x, self.angles(positions, seq_len), self.pairing)
        turned[..., : self.width] *= self.attention_factor(seq_len)
        return turned

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return _Module(self, dims, max_len)


class _Module(PositionModule):
    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries and keys belong to one text: the longest position of both decides its length."""
        both = torch.cat([whole_tensor(q_pos).flatten(), whole_tensor(k_pos).flatten()])
        seq_len = int(both.max()) + 1 if both.numel() else None
        return self.spec.rotate(q, q_pos, seq_len), self.spec.rotate(k, k_pos, seq_len)
