"""What an encoding is: a frozen spec with its ranges, and a module with three hooks.

Position enters attention in exactly three places, and every method is one or more of three hooks:
``embed`` adds to the token embeddings, ``rotate`` turns queries and keys, ``bias`` adds to the scores.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from posviz.rotation import as_positions
from posviz.types import MAX_D_MODEL, MAX_LEN, Dims, Refusal, Text, real_number, shown, whole_number

Positions = torch.Tensor | np.ndarray | Sequence[int]


@dataclass(frozen=True)
class Knob:
    """How a parameter of a spec is offered and checked; the page's controls are made from it.

    low, high: allowed range; ``above`` excludes low itself. choices: the allowed names of a text;
    names: what the page calls them, in the same order.
    shared: the value comes from the sidebar's control of the same name (``base``).
    """

    label: Text
    help: Text
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    names: tuple[Text, ...] = ()
    shared: bool = False


def knob(default: Any, label: Text, help: Text, **options: Any) -> Any:
    """A dataclass field whose range and texts are a :class:`Knob` in its metadata."""
    return dataclasses.field(default=default, metadata={"knob": Knob(label, help, **options)})


BASE_LABEL = Text("base", "base")
BASE_HELP = Text(
    "How fast the frequencies fall from one pair of dimensions to the next.",
    "相邻两对维度的频率按它递减。",
)


def base_knob() -> Any:
    return knob(10_000.0, BASE_LABEL, BASE_HELP, low=1.0, high=1e12, above=True, shared=True)


@dataclass(frozen=True)
class Paper:
    """Where an encoding was published."""

    authors: str
    year: int
    title: str
    arxiv: str

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}"

    def __str__(self) -> str:
        return f"{self.authors} {self.year}, {self.title}, arXiv {self.arxiv}"


@dataclass(frozen=True)
class Model:
    """A well-known model that uses an encoding; arxiv: the paper that says so."""

    name: str
    arxiv: str

    @property
    def url(self) -> str:
        return f"https://arxiv.org/abs/{self.arxiv}"


@dataclass(frozen=True)
class Capabilities:
    """What holds for an encoding by construction; tests measure each.

    trainable: has parameters. relative: with equal content, a score depends on key - query only.
    unbounded: defined at any position, also beyond max_len. directional: without a mask, tells
    before from after. content: what it adds depends on the content, not on the position alone.
    """

    trainable: bool
    relative: bool
    unbounded: bool
    directional: bool
    content: bool = False


@dataclass(frozen=True)
class Claim:
    """Something an encoding promises, measured: what, the number, what it should be, whether it is."""

    label: Text
    value: float
    expected: Text
    holds: bool | None = None  # None: a fact without a promise


class PositionModule(nn.Module):
    """The three hooks; each default is the identity, and attention always calls all three.

    Shapes: x (..., L, d_model); q (..., H, Lq, d_head); k (..., H, Lk, d_head); positions (L,) integers.
    """

    def __init__(self, spec: "Encoding", dims: Dims, max_len: int) -> None:
        super().__init__()
        self.spec, self.dims, self.max_len = spec, dims, max_len

    def embed(self, x: torch.Tensor, positions: Positions | None = None) -> torch.Tensor:
        """x plus what the encoding adds, (..., L, d_model). positions default to 0 .. L-1."""
        return x

    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries and keys turned by their positions, same shapes."""
        return q, k

    def bias(self, q: torch.Tensor, k: torch.Tensor, q_pos: Positions, k_pos: Positions) -> torch.Tensor:
        """What is added to the scaled scores, broadcastable to (..., H, Lq, Lk)."""
        return q.new_zeros(())

    def sample(self, length: int) -> torch.Tensor:
        """(length, d_model) float64: the embeddings for which a table is drawn; zeros, unless these say nothing."""
        return torch.zeros(length, self.dims.d_model, dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A position encoding with its parameters; an invalid one cannot be made (:class:`Refusal`)."""

    kind: ClassVar[str]  # "none" | "additive" | "rotary" | "bias"
    title: ClassVar[Text]
    summary: ClassVar[Text]
    formula: ClassVar[str]  # LaTeX
    paper: ClassVar[Paper]
    capabilities: ClassVar[Capabilities]
    # What the heatmap page can show, first one first; see posviz.views.
    pictures: ClassVar[tuple[str, ...]] = ()
    # How many numbers a position has: 2 for rows and columns of patches, 3 for time, row and column.
    axes: ClassVar[int] = 1
    used_by: ClassVar[tuple[Model, ...]] = ()
    # Where its parameters are: "" for none, "model" once for all layers, "layer" for each, as its paper has it.
    sharing: ClassVar[str] = ""
    # How its parameters start, and whose choice that is; for the trainable ones.
    starts: ClassVar[Text] = Text("", "")
    # Whether what is added to a token depends on later tokens, whatever the mask: not for causal models.
    looks_ahead: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            if "knob" in item.metadata:
                # frozen, but not yet handed out: 10000 and np.float64(10000) become 10000.0
                object.__setattr__(self, item.name, check_knob(item, getattr(self, item.name)))
        self.check()

    def check(self) -> None:
        """Rules between parameters; raises :class:`Refusal`."""

    def fits(self, dims: Dims) -> None:
        """Refuse sizes the encoding cannot have."""

    def width_step(self, n_heads: int) -> int:
        """d_model has to be a multiple of this for so many heads."""
        return n_heads

    def mirror_blind(self, length: int) -> bool:
        """Whether, without a mask, a sentence of so many tokens read backwards looks the same."""
        return not self.capabilities.directional

    @property
    def needs_causal_mask(self) -> bool:
        """Whether its scores mean nothing for keys after the query."""
        return False

    def scale(self, d_head: int) -> float:
        """The factor of q.k, 1 / sqrt(d_head) unless the paper says otherwise."""
        return 1 / math.sqrt(d_head)

    def turns(self, d_head: int) -> tuple[torch.Tensor, str] | None:
        """(frequencies, pairing) where ``rotate`` turns pair i of position p by p * w_i and does no more."""
        return None

    def build(self, dims: Dims, max_len: int = 512, generator: torch.Generator | None = None) -> PositionModule:
        """The module for these sizes; parameters, if any, are drawn from ``generator`` (default: seed 0)."""
        max_len = whole_number("max_len", max_len, 1, MAX_LEN)
        self.fits(dims)
        return self.make_module(dims, max_len, generator or torch.Generator().manual_seed(0))

    def make_module(self, dims: Dims, max_len: int, generator: torch.Generator) -> PositionModule:
        return PositionModule(self, dims, max_len)

    def describe(self, lang: str = "en") -> str:
        """One paragraph in ``lang``: what it does, its parameters and its paper."""
        given = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.parameters().items()]
        values = Text(", ", "，")(lang).join(given)
        end = Text(" Parameters: {v}.", "参数：{v}。")(lang, v=values) if values else ""
        whole = Text("{title}: {summary}{end} {paper}", "{title}：{summary}{end}{paper}")
        return whole(lang, title=self.title(lang), summary=self.summary(lang), end=end, paper=self.paper)

    def claims(self, module: PositionModule, length: int) -> list[Claim]:
        """What can be checked of this encoding on positions 0 .. length-1, computed now."""
        return []

    def parameters(self) -> dict[str, Any]:
        """The spec's own parameters, name -> value."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if "knob" in f.metadata}

    def call(self) -> str:
        """The Python expression that makes this spec."""
        given = "".join(f", {name}={value!r}" for name, value in self.parameters().items())
        return f'encodings.make("{self.name}"{given})'

    def explain(self, dims: Dims, picture: str, row: int, col: int, value: float, head: int = 0) -> str:
        """LaTeX: the formula of one cell of a picture with its numbers substituted."""
        which = rf"_{{{head}}}" if picture == "bias" else ""
        name = self.name.replace("_", r"\_")
        return rf"\mathrm{{{name}}}{which}({row}, {col}) = \mathbf{{{value:.6f}}}"

    def snippet(self, dims: Dims, length: int, picture: str, seed: int, patch: tuple[int, int] | None = None) -> str:
        """Python that leaves the values of a picture in ``values``. patch: the chosen one of a "grid"."""
        raise NotImplementedError


def check_knob(item: dataclasses.Field, value: Any) -> Any:
    """The value as its knob's type; refused outside its range or of another type."""
    control: Knob = item.metadata["knob"]
    if control.choices or isinstance(item.default, bool):
        allowed = control.choices or (True, False)
        if type(value) is not type(item.default) or value not in allowed:
            raise Refusal(
                Text("`{name}` must be one of {allowed}, got {got}", "`{name}` 只能是 {allowed} 之一，现在是 {got}"),
                field=item.name,
                name=item.name,
                allowed=", ".join(map(str, allowed)),
                got=shown(value),
            )
        return value
    if isinstance(item.default, int):
        return whole_number(item.name, value, int(control.low), int(control.high))
    return real_number(item.name, value, control.low, control.high, above=control.above)


def nearest_width(d_model: int, step: int) -> int:
    """The multiple of ``step`` next above d_model, or below it where above is too large."""
    above = -(-d_model // step) * step
    return above if above <= MAX_D_MODEL else above - step


def _subject(spec: "Encoding") -> Text:
    """The title as a sentence begins with it: Latin letters are set apart from Chinese ones."""
    return Text(spec.title.en, spec.title.zh + (" " if spec.title.zh[-1].isascii() else ""))


def check_head_width(spec: "Encoding", d_head: int, multiple: int, dims: Dims | None = None) -> None:
    """Refuse a head that is not a multiple of ``multiple`` wide; with dims the message names a width that fits."""
    if d_head >= multiple and d_head % multiple == 0:
        return
    whole = Text(" (d_model {d} / n_heads {h}); try d_model {t}", "（d_model {d} / {h} 个头）；可以试试 d_model {t}")
    more = Text("", "")
    if dims is not None:
        near = nearest_width(dims.d_model, spec.width_step(dims.n_heads))
        more = whole.filled(d=dims.d_model, h=dims.n_heads, t=near)
    even = Text("even", "偶数") if multiple == 2 else Text(f"a multiple of {multiple}", f" {multiple} 的倍数")
    raise Refusal(
        Text("`d_head` must be {even} for {name}, got {got}{more}", "{name}要求 `d_head` 为{even}，现在是 {got}{more}"),
        field="d_model" if dims else "d_head",
        even=even,
        name=_subject(spec),
        got=d_head,
        more=more,
    )


def check_model_width(spec: "Encoding", dims: Dims, multiple: int) -> None:
    """Refuse a d_model that is not a multiple of ``multiple``; the message names a width that fits."""
    if dims.d_model % multiple == 0:
        return
    even = Text("even", "偶数") if multiple == 2 else Text(f"a multiple of {multiple}", f" {multiple} 的倍数")
    raise Refusal(
        Text(
            "`d_model` must be {even} for {name}, got {got}; try {near}",
            "{name}要求 `d_model` 为{even}，现在是 {got}；可以试试 {near}",
        ),
        field="d_model",
        even=even,
        name=_subject(spec),
        got=dims.d_model,
        near=nearest_width(dims.d_model, spec.width_step(dims.n_heads)),
    )


def relative_positions(q_pos: Positions, k_pos: Positions) -> torch.Tensor:
    """key - query, (Lq, Lk) int64."""
    return as_positions(k_pos)[None, :] - as_positions(q_pos)[:, None]


def seeded_normal(shape: tuple[int, ...], std: float, generator: torch.Generator) -> nn.Parameter:
    """A parameter drawn from N(0, std^2) by an explicit generator."""
    return nn.Parameter(torch.randn(shape, generator=generator) * std)
