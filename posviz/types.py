"""What the layers hand to each other: frozen dataclasses with their shapes, and the one kind of refusal."""

import copy
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:  # only for annotations: types.py stands below every other module
    from posviz.encodings.base import Encoding

LANGUAGES = ("en", "zh")

MAX_D_MODEL = 1024
MAX_HEADS = 64
MAX_LEN = 8192
MAX_TOKENS = 512
MAX_CHARACTERS = 20_000  # read before splitting; a token may have several characters


@dataclass(frozen=True)
class Text:
    """One sentence in every language of the app; ``{name}`` stands for a value."""

    en: str
    zh: str

    def __call__(self, lang: str = "en", **values: Any) -> str:
        """The sentence in ``lang`` ("en" or "zh"), with its values filled in."""
        template = self.zh if lang == "zh" else self.en
        return template.format(**values) if values else template

    def filled(self, **values: Any) -> "Text":
        """The same sentence with its values filled in, in every language."""
        return Text(self.en.format(**values), self.zh.format(**values))


class Refusal(ValueError):
    """A bad value, answered by one sentence: what was wrong, what was got, what is allowed.

    ``str(refusal)`` is English; :meth:`text` gives the other languages. ``field`` names the value.
    """

    def __init__(self, text: Text, *, field: str = "", **values: Any) -> None:
        self._text, self.field, self.values = text, field, values
        super().__init__(self.text("en"))

    def __reduce__(self) -> tuple[Any, ...]:  # an exception is copied by its args alone
        return functools.partial(Refusal, self._text, field=self.field, **self.values), ()

    def kept(self) -> "Refusal":
        """The same without its traceback, which holds on to everything that was at hand: to keep, and to raise again."""
        return copy.copy(self)

    def text(self, lang: str = "en") -> str:
        return self._text(lang, **{k: v(lang) if isinstance(v, Text) else v for k, v in self.values.items()})


def shown(value: Any, limit: int = 40) -> str:
    """A value as a message quotes it: short, one line, no control characters."""
    if isinstance(value, int) and value.bit_length() > 4096:  # repr refuses very long numbers
        return f"{'-' if value < 0 else ''}2^{value.bit_length() - 1}…"
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _quoted(value: Any) -> str:
    """Where a number is due, text keeps its quotation marks: got '7' is not got 7."""
    return shown(repr(value) if isinstance(value, str) else value)


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """``value`` as an int in [low, high], or a :class:`Refusal` (bools, floats and text are refused)."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise Refusal(
            Text(
                "`{name}` must be a whole number from {low} to {high}, got {got}",
                "`{name}` 必须是 {low} 到 {high} 的整数，现在是 {got}",
            ),
            field=name,
            name=name,
            low=low,
            high=high,
            got=_quoted(value),
        )
    return int(value)


def real_number(name: str, value: Any, low: float, high: float, *, above: bool = False, below: bool = False) -> float:
    """``value`` as a finite float from ``low`` to ``high`` (``above``/``below``: the end itself is excluded)."""
    good = (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and (value > low if above else value >= low)
        and (value < high if below else value <= high)
        and math.isfinite(value)  # after the range: an int too large for a float is no OverflowError
    )
    if not good:
        lower = Text(f"above {low:g}", f"大于 {low:g}") if above else Text(f"from {low:g}", f"不小于 {low:g}")
        upper = Text(f"below {high:g}", f"小于 {high:g}") if below else Text(f"up to {high:g}", f"不大于 {high:g}")
        raise Refusal(
            Text(
                "`{name}` must be a finite number {lower} and {upper}, got {got}",
                "`{name}` 必须是{lower}、{upper} 的有限数，现在是 {got}",
            ),
            field=name,
            name=name,
            lower=lower,
            upper=upper,
            got=_quoted(value),
        )
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Dims:
    """Sizes of one attention layer.

    d_model: width of a token vector, 1..1024. n_heads: number of heads, 1..64, divides d_model.
    Raises :class:`Refusal` otherwise.
    """

    d_model: int
    n_heads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d_model", whole_number("d_model", self.d_model, 1, MAX_D_MODEL))
        object.__setattr__(self, "n_heads", whole_number("n_heads", self.n_heads, 1, MAX_HEADS))
        if self.d_model % self.n_heads:
            fits = [h for h in range(1, MAX_HEADS + 1) if self.d_model % h == 0]
            raise Refusal(
                Text(
                    "`n_heads` must divide d_model, got {h} heads for d_model {d}; "
                    "d_model {d} can be split into {fits} heads",
                    "头数必须整除 d_model，现在是 {h} 个头、d_model {d}；d_model {d} 可以分成 {fits} 个头",
                ),
                field="n_heads",
                h=self.n_heads,
                d=self.d_model,
                fits=", ".join(map(str, fits)),
            )

    @property
    def d_head(self) -> int:
        """Width of one head, d_model / n_heads."""
        return self.d_model // self.n_heads


@dataclass(frozen=True)
class PieceInfo:
    """What a model's own piece is made of.

    written: as the vocabulary writes it (``##ing``, ``Ġdog``, ``æĪ``). raw: its UTF-8 bytes, empty for a
    special token. special: added by the tokenizer or reserved. span: where it stands in the sentence,
    [start, end) in characters; None for what is not there. Fragments of one character share its span.
    """

    written: str
    raw: bytes = b""
    special: bool = False
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tokens:
    """A sentence cut into tokens.

    text: the sentence as typed. pieces: what each token shows, in order. ids: one integer for each
    piece; the same piece has the same id in every sentence. unit: "character", "word", "byte", or "piece"
    for a model's own. infos: one for each of a model's own pieces, else empty.
    """

    text: str
    pieces: tuple[str, ...]
    ids: tuple[int, ...]
    unit: str = "character"
    infos: tuple[PieceInfo, ...] = ()

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def special(self) -> tuple[bool, ...]:
        """Which tokens are special ones, such as [CLS]."""
        return tuple(info.special for info in self.infos) or (False,) * len(self.pieces)

    @property
    def labels(self) -> tuple[str, ...]:
        """Unique labels: the piece, a middle dot and its position (``我·0``)."""
        return tuple(f"{piece}·{i}" for i, piece in enumerate(self.pieces))


def read_only(array: Any, dtype: Any = None) -> np.ndarray:
    """A numpy copy nobody can write to; torch tensors are detached first, bfloat16 becomes float32."""
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        array = (array.float() if array.dtype == torch.bfloat16 else array).numpy()
    result = np.array(array, dtype=dtype)
    result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False)
class AttentionTrace:
    """Every intermediate of one multi-head attention layer on one sentence.

    L tokens, H heads, d = d_model, e = d_head = d / H. All arrays are read-only numpy.

    embedding (L, d)        token embeddings x, content only
    position (L, d)         what the encoding added to them (zeros unless it is additive)
    hidden (L, d)           x + position: the layer's input
    q, k, v (H, L, e)       projections of the hidden states, before any rotation
    q_rotated, k_rotated (H, L, e)   after the encoding's rotation (equal to q, k if it has none)
    parts: name -> (H, L, L)         scaled terms whose sum is ``scores``:
        additive: content_content, content_position, position_content, position_position
        rotary: content (as if nothing were turned) and rotation (what turning changes)
        others: content and bias
    bias (H, L, L)          what the encoding added to the scores (zeros unless it is a bias)
    scale                   factor of q.k: 1/sqrt(e) for most, 1 for T5
    scores (H, L, L)        before the mask and softmax; [h, i, j]: query i, key j
    allowed (L, L)          True where query i may look at key j
    weights (H, L, L)       softmax over the allowed keys; rows sum to 1, forbidden cells are 0
    head_outputs (H, L, e)  weights @ v
    output (L, d)           concatenated heads times W_O plus b_o, without the residual
    w_o (H, e, d), b_o (d,) the output projection, head by head, where the trace keeps it
    key_tokens              cross-attention: what k and v come from, Lk tokens; its (H, L, Lk) and (L, Lk)

    q, k and v hold the projections' own offsets where a model has them, so that
    scores = scale * q_rotated . k_rotated + bias is exact for every model.
    """

    tokens: Tokens
    spec: "Encoding"
    dims: Dims
    seed: int
    mask: str
    scale: float
    embedding: np.ndarray = field(repr=False)
    position: np.ndarray = field(repr=False)
    hidden: np.ndarray = field(repr=False)
    q: np.ndarray = field(repr=False)
    k: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    q_rotated: np.ndarray = field(repr=False)
    k_rotated: np.ndarray = field(repr=False)
    parts: Mapping[str, np.ndarray] = field(repr=False)
    bias: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    allowed: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    head_outputs: np.ndarray = field(repr=False)
    output: np.ndarray = field(repr=False)
    w_o: np.ndarray | None = field(default=None, repr=False)
    b_o: np.ndarray | None = field(default=None, repr=False)
    key_tokens: Tokens | None = field(default=None, repr=False)

    @property
    def keys(self) -> Tokens:
        """The tokens looked at: the sentence itself but in cross-attention."""
        return self.key_tokens or self.tokens

    def head_scores(self, head: int) -> np.ndarray:
        """(L, L): the scores of one head; cheap also where the layer's would be large."""
        return self.scores[head]

    def head_weights(self, head: int) -> np.ndarray:
        """(L, L): the weights of one head."""
        return self.weights[head]

    def head_parts(self, head: int) -> Mapping[str, np.ndarray]:
        """name -> (L, L): the parts of the scores of one head."""
        return {name: part[head] for name, part in self.parts.items()}

    @property
    def residual(self) -> np.ndarray:
        """(L, d): hidden + output, what the next layer receives."""
        return self.hidden + self.output

    @property
    def pooled(self) -> np.ndarray:
        """(d,): mean over tokens of the layer's result, a sentence vector."""
        return self.residual.mean(axis=0)
