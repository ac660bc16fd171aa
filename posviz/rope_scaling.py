"""RoPE for longer texts than a model was trained on: one frozen spec for each published scaling, in float64.

Each changes the frequencies w_i = base^(-2i / width) of the pairs and, some of them, the length of the
turned vectors (the attention factor, which multiplies cos and sin, so scores by its square).
Values agree with transformers.modeling_rope_utils to float32's rounding; bad values are refused, not used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from posviz.rotation import inv_freq
from posviz.types import Refusal, Text, real_number, shown, whole_number

MAX_POSITIONS = 2**31 - 1
MAX_FACTOR = 1e6
MAX_PAIRS = 4096


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """No scaling: the frequencies of the RoFormer paper, the same for every length."""

    kind: ClassVar[str] = "default"
    title: ClassVar[Text] = Text("no scaling", "不缩放")
    formula: ClassVar[str] = r"\omega_i' = \omega_i = b^{-2i/d}"

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        """(width/2,) float64 radians a position; seq_len: the text's length where that matters."""
        return inv_freq(width, base)

    def attention_factor(self) -> float:
        """What cos and sin are multiplied by."""
        return 1.0

    def reach(self) -> float | None:
        """Up to which position it is meant to be used, or None where the spec does not say."""
        return None

    def band(self, width: int, base: float) -> tuple[float, float] | None:
        """The pair numbers between which it blends from keeping to dividing, or None without a band."""
        return None


@dataclass(frozen=True, kw_only=True)
class Linear(Scaling):
    """Position interpolation: Chen et al. 2023, arXiv 2306.15595. Every angle is p w / factor."""

    kind: ClassVar[str] = "linear"
    title: ClassVar[Text] = Text("linear (position interpolation)", "线性（位置内插）")
    formula: ClassVar[str] = r"\omega_i' = \omega_i / s"
    factor: float

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR))

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        return inv_freq(width, base) / self.factor


@dataclass(frozen=True, kw_only=True)
class NtkAware(Scaling):
    """A larger base, so that the slowest pair is divided by factor and the fastest is kept (in 2309.00071, section 3.1)."""

    kind: ClassVar[str] = "ntk"
    title: ClassVar[Text] = Text("NTK-aware", "NTK-aware")
    formula: ClassVar[str] = r"b' = b\, s^{d/(d-2)},\quad \omega_i' = b'^{-2i/d}"
    factor: float

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR))

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        return inv_freq(width, _stretched(base, self.factor, width))


@dataclass(frozen=True, kw_only=True)
class DynamicNtk(Scaling):
    """NTK-aware with a factor that grows with the text: nothing changes up to max_position_embeddings."""

    kind: ClassVar[str] = "dynamic"
    title: ClassVar[Text] = Text("dynamic NTK", "动态 NTK")
    formula: ClassVar[str] = r"b' = b\,\bigl(sL/M-(s-1)\bigr)^{d/(d-2)},\quad L \ge M"
    factor: float
    max_position_embeddings: int

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR), max_position_embeddings=None)

    def base(self, width: int, base: float, seq_len: int | None) -> float:
        """The base used for a text of seq_len positions (None: not longer than trained)."""
        longest = self.max_position_embeddings
        length = max(seq_len or longest, longest)
        # s L / M - (s - 1), written so that L = M gives exactly 1
        return _stretched(base, 1 + self.factor * (length / longest - 1), width)

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        return inv_freq(width, self.base(width, base, seq_len))

    def reach(self) -> float:
        return self.factor * self.max_position_embeddings


@dataclass(frozen=True, kw_only=True)
class Yarn(Scaling):
    """Peng et al. 2023, arXiv 2309.00071: fast pairs are kept, slow ones divided, a ramp lies between.

    beta_fast, beta_slow: turns within the original length above which a pair is kept, below which it is
    divided. truncate: round the ramp's ends outwards to whole pairs. mscale, mscale_all_dim: DeepSeek's
    ratio in the attention factor, used only when both are given; attention_factor overrides all.
    """

    kind: ClassVar[str] = "yarn"
    title: ClassVar[Text] = Text("YaRN", "YaRN")
    formula: ClassVar[str] = r"\omega_i' = (1-r_i)\,\omega_i + r_i\,\omega_i/s,\quad a = 0.1\ln s + 1"
    factor: float
    original_max_position_embeddings: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float | None = None
    mscale_all_dim: float | None = None
    given_attention_factor: float | None = None

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR), original_max_position_embeddings=None)
        for name in ("beta_fast", "beta_slow"):
            real_number(name, getattr(self, name), 0.0, 1e6, above=True)
        for name in ("mscale", "mscale_all_dim"):
            if getattr(self, name) is not None:
                real_number(name, getattr(self, name), 0.0, 100.0)
        _check_attention_factor(self.given_attention_factor)
        if not isinstance(self.truncate, bool):
            raise Refusal(
                Text("`truncate` must be true or false, got {got}", "`truncate` 必须是 true 或 false，现在是 {got}"),
                field="truncate",
                got=shown(repr(self.truncate)),
            )
        if self.beta_fast < self.beta_slow:
            raise Refusal(
                Text(
                    "`beta_fast` must not be below beta_slow, got beta_fast {fast:g} and beta_slow {slow:g}; "
                    "are they exchanged?",
                    "`beta_fast` 不能小于 beta_slow，现在 beta_fast 是 {fast:g}、beta_slow 是 {slow:g}；是不是写反了？",
                ),
                field="beta_fast",
                fast=self.beta_fast,
                slow=self.beta_slow,
            )

    def _ends(self, width: int, base: float) -> tuple[float, float]:
        """The ramp's ends as pair numbers: where a pair makes beta turns within the original length."""
        low, high = (
            width * math.log(self.original_max_position_embeddings / (turns * 2 * math.pi)) / (2 * math.log(base))
            for turns in (self.beta_fast, self.beta_slow)
        )
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        return max(low, 0), min(high, width - 1)

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        low, high = self._ends(width, base)
        high += 0.001 if low == high else 0.0  # a step instead of a division by zero
        pairs = torch.arange(width // 2, dtype=torch.float64)
        ramp = ((pairs - low) / (high - low)).clamp(0, 1)
        kept = inv_freq(width, base)
        return kept * (1 - ramp) + kept / self.factor * ramp

    def attention_factor(self) -> float:
        if self.given_attention_factor is not None:
            return self.given_attention_factor
        if self.mscale and self.mscale_all_dim:
            return mscale(self.factor, self.mscale) / mscale(self.factor, self.mscale_all_dim)
        return mscale(self.factor)

    def reach(self) -> float:
        return self.factor * self.original_max_position_embeddings

    def band(self, width: int, base: float) -> tuple[float, float]:
        return self._ends(width, base)


def mscale(factor: float, weight: float = 1.0) -> float:
    """YaRN's 0.1 weight ln(factor) + 1; 1 where nothing is stretched."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


@dataclass(frozen=True, kw_only=True)
class Llama3(Scaling):
    """Llama 3.1 (Grattafiori et al. 2024, arXiv 2407.21783): bands by wavelength, blended in frequency.

    Pairs that turn more than high_freq_factor times within the original length are kept, those that
    turn less than low_freq_factor times are divided by factor.
    """

    kind: ClassVar[str] = "llama3"
    title: ClassVar[Text] = Text("Llama 3", "Llama 3")
    formula: ClassVar[str] = (
        r"\omega_i' = (1-r_i)\,\omega_i/s + r_i\,\omega_i,\quad r_i = \frac{L_0/\lambda_i - l}{h - l}\in[0,1]"
    )
    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR), original_max_position_embeddings=None)
        for name in ("low_freq_factor", "high_freq_factor"):
            real_number(name, getattr(self, name), 0.0, 1e6, above=True)
        if self.high_freq_factor <= self.low_freq_factor:
            raise Refusal(
                Text(
                    "`high_freq_factor` must be above low_freq_factor, got high_freq_factor {high:g} and "
                    "low_freq_factor {low:g}",
                    "`high_freq_factor` 必须大于 low_freq_factor，现在 high_freq_factor 是 {high:g}、low_freq_factor 是 {low:g}",
                ),
                field="high_freq_factor",
                high=self.high_freq_factor,
                low=self.low_freq_factor,
            )

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        kept = inv_freq(width, base)
        turns = self.original_max_position_embeddings * kept / (2 * math.pi)
        share = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        share = share.clamp(0, 1)
        return (1 - share) * kept / self.factor + share * kept

    def reach(self) -> float:
        return self.factor * self.original_max_position_embeddings

    def band(self, width: int, base: float) -> tuple[float, float]:
        fast, slow = (
            width * math.log(self.original_max_position_embeddings / (turns * 2 * math.pi)) / (2 * math.log(base))
            for turns in (self.high_freq_factor, self.low_freq_factor)
        )
        return max(fast, 0.0), min(max(slow, 0.0), width / 2 - 1)


@dataclass(frozen=True, kw_only=True)
class LongRope(Scaling):
    """Ding et al. 2024, arXiv 2402.13753: a divisor for each pair, one list up to the original length, one beyond."""

    kind: ClassVar[str] = "longrope"
    title: ClassVar[Text] = Text("LongRoPE", "LongRoPE")
    formula: ClassVar[str] = r"\omega_i' = \omega_i/\lambda_i,\quad a = \sqrt{1+\ln s/\ln L_0}"
    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    factor: float
    original_max_position_embeddings: int
    given_attention_factor: float | None = None

    def __post_init__(self) -> None:
        _check(self, factor=(0.0, MAX_FACTOR), original_max_position_embeddings=None)
        if self.original_max_position_embeddings < 2:  # its logarithm divides
            whole_number("original_max_position_embeddings", self.original_max_position_embeddings, 2, MAX_POSITIONS)
        for name in ("short_factor", "long_factor"):
            object.__setattr__(self, name, _divisors(name, getattr(self, name)))
        _check_attention_factor(self.given_attention_factor)

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        name = "long_factor" if seq_len and seq_len > self.original_max_position_embeddings else "short_factor"
        for each in ("short_factor", "long_factor"):
            self._fits(each, width)
        return inv_freq(width, base) / torch.tensor(getattr(self, name), dtype=torch.float64)

    def _fits(self, name: str, width: int) -> None:
        if len(getattr(self, name)) != width // 2:
            raise Refusal(
                Text(
                    "`{name}` must have one number for each of the {pairs} pairs, got {got}",
                    "`{name}` 必须给 {pairs} 对维度各一个数，现在有 {got} 个",
                ),
                field=name,
                name=name,
                pairs=width // 2,
                got=len(getattr(self, name)),
            )

    def attention_factor(self) -> float:
        if self.given_attention_factor is not None:
            return self.given_attention_factor
        if self.factor <= 1:
            return 1.0
        return math.sqrt(1 + math.log(self.factor) / math.log(self.original_max_position_embeddings))

    def reach(self) -> float:
        return self.factor * self.original_max_position_embeddings


@dataclass(frozen=True, kw_only=True)
class Proportional(Scaling):
    """Partial rotation whose exponents run over the whole head (Gemma 4): the pairs that rest have w = 0.

    share: part of the head's pairs that turn; ``width`` is the whole head's.
    """

    kind: ClassVar[str] = "proportional"
    title: ClassVar[Text] = Text("proportional", "按比例")
    formula: ClassVar[str] = r"\omega_i' = b^{-2i/d_{\mathrm{head}}}/s \;\; (i < \rho d/2),\quad 0 \text{ otherwise}"
    share: float = 1.0
    factor: float = 1.0

    def __post_init__(self) -> None:
        _check(self, factor=(1.0, MAX_FACTOR))
        real_number("partial_rotary_factor", self.share, 0.0, 1.0, above=True)

    def turning(self, width: int) -> int:
        """How many pairs turn."""
        return int(self.share * width // 2)

    def inv_freq(self, width: int, base: float, seq_len: int | None = None) -> torch.Tensor:
        frequencies = inv_freq(width, base) / self.factor
        if not self.turning(width):
            raise Refusal(
                Text(
                    "`partial_rotary_factor` must turn at least one pair; got {f:g} of {n} pairs",
                    "`partial_rotary_factor` 至少要让一对维度旋转；现在是 {n} 对的 {f:g} 倍",
                ),
                field="partial_rotary_factor",
                f=self.share,
                n=width // 2,
            )
        frequencies[self.turning(width) :] = 0.0
        return frequencies


SCALINGS: dict[str, type[Scaling]] = {
    cls.kind: cls for cls in (Scaling, Linear, NtkAware, DynamicNtk, Yarn, Llama3, LongRope, Proportional)
}


def critical_dimension(width: int, base: float, length: int) -> int:
    """Dimensions whose pairs complete a turn within ``length`` positions: 2 ceil(d/2 log_base(length / 2 pi)).

    Liu et al. 2023, arXiv 2310.05209. From 0 to width.
    """
    turns = length / (2 * math.pi)
    if turns <= 1:
        return 0
    if base <= 1:  # no pair is slower than the first one
        return width
    return min(width, 2 * math.ceil(width / 2 * math.log(turns) / math.log(base)))


def _stretched(base: float, factor: float, width: int) -> float:
    """base factor^(d/(d-2)): the last frequency is divided by factor exactly, the first one kept."""
    if width == 2:
        raise Refusal(
            Text(
                "NTK scaling needs at least two pairs to turn, got a width of {got}",
                "NTK 缩放至少需要两对维度旋转，现在的宽度是 {got}",
            ),
            field="width",
            got=width,
        )
    return base * factor ** (width / (width - 2))


def _check(spec: Scaling, **ranges: tuple[float, float] | None) -> None:
    """Numbers in their range (the low end of 0 is excluded), or whole positions where the range is None."""
    for name, span in ranges.items():
        value = getattr(spec, name)
        if span is None:
            object.__setattr__(spec, name, whole_number(name, value, 1, MAX_POSITIONS))
        else:
            object.__setattr__(spec, name, real_number(name, value, *span, above=span[0] == 0.0))


def _check_attention_factor(value: float | None) -> None:
    if value is not None:
        real_number("attention_factor", value, 0.0, 100.0, above=True)


def _divisors(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= MAX_PAIRS:
        raise Refusal(
            Text(
                "`{name}` must be a list of 1 to {limit} numbers, got {got}",
                "`{name}` 必须是 1 到 {limit} 个数的列表，现在是 {got}",
            ),
            field=name,
            name=name,
            limit=MAX_PAIRS,
            got=shown(values),
        )
    return tuple(real_number(f"{name}[{i}]", value, 0.0, MAX_FACTOR, above=True) for i, value in enumerate(values))
