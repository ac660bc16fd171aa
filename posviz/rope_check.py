"""Which convention of RoPE turned these vectors? Vectors before and after, compared with everything that is usual.

A convention says how dimensions are coupled, how cos and sin are laid out, which way it turns, from which
position it counts, base, width, scaling and precision. All are tried; what reproduces the vectors is named,
the plain one first; where none does, the nearest one and the first number that differs.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from posviz.encodings.model_rope import ModelRope
from posviz.rotation import PAIRINGS, inv_freq
from posviz.types import Refusal, Text, real_number, whole_number

MAX_POSITION = 2**31 - 1
MAX_WIDTH = 1024
SEARCHED = 4  # vectors that every convention is tried on; what fits is then tried on all
BASES = (10_000.0, 500_000.0, 1_000_000.0)
DIVISORS = (1.0, 2.0, 4.0, 8.0, 16.0)
TOLERANCE = 1e-2  # of the largest number: what bfloat16 or float32 angles may cost
CLOSE = 3.0  # how many times worse than the best one a convention may be and still count as the same


@dataclass(frozen=True, kw_only=True)
class Convention:
    """One way to turn vectors; the defaults are Llama's.

    pairing: which two dimensions are a pair. table: how cos and sin are laid out over the dimensions; if it is
    not the pairing's own, two conventions were mixed. sign: -1 turns backwards. swapped: cos and sin exchanged.
    offset: added to the positions. divisor: positions are divided (linear scaling). width: dimensions that
    turn. exponent: "2i/width", or what was mistaken for it: "2i/d_head", "i/width". precision: where numbers
    are rounded: "exact", "bfloat16 frequencies", "bfloat16 angles", "float16 angles".
    scaled: the model's scaled frequencies are used.
    """

    pairing: str = "half"
    table: str = "half"
    sign: int = 1
    swapped: bool = False
    offset: int = 0
    base: float = 10_000.0
    divisor: float = 1.0
    width: int = 2
    exponent: str = "2i/width"
    precision: str = "exact"
    scaled: bool = False


@dataclass(frozen=True)
class Match:
    """A convention with the largest difference it leaves, relative to the largest number, and the length it needs.

    length: by how much the turned part is longer than the convention alone makes it (an attention factor).
    """

    convention: Convention
    error: float
    length: float


@dataclass(frozen=True)
class Difference:
    """The first number that the nearest convention does not give: vector, dimension, what was expected and got."""

    row: int
    dimension: int
    expected: float
    got: float


@dataclass(frozen=True)
class Verdict:
    """matches: the conventions that reproduce the vectors, nearest to the usual first; empty if none does.

    nearest: the best convention in any case. first: where it first differs, None if it does not. norms: largest
    relative change of a vector's length. still: nothing was turned at all.
    """

    matches: tuple[Match, ...]
    nearest: Match
    first: Difference | None
    norms: float
    still: bool


def check(before: np.ndarray, after: np.ndarray, start: int, base: float, model: ModelRope | None = None) -> Verdict:
    """Find the conventions that turn ``before`` into ``after``.

    before, after: (d,), (len, d) or (..., len, d) float64 of the same shape; the first vector of each sequence
    stands at position ``start``, the next at start + 1. model: its scaled frequencies are tried as well.
    """
    start = whole_number("position", start, 0, MAX_POSITION)
    base = real_number("base", base, 1.0, 1e12, above=True)
    x, y, positions = rows(before, after, start)
    if model is not None:
        model.rotary_dim(x.shape[1])
    few = slice(0, None) if len(x) <= SEARCHED else np.linspace(0, len(x) - 1, SEARCHED).round().astype(int)
    tried = _tried(x[few], y[few], positions[few], base, model)
    near = [_measure(x, y, positions, match.convention, model) for match in tried]
    matches = sorted(
        (m for m in near if m.error <= TOLERANCE), key=lambda m: (_oddness(m.convention, base, x), m.error)
    )
    nearest = matches[0] if matches else min(near, key=lambda m: _distance(x, y, positions, m, model))
    lengths = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    return Verdict(
        matches=tuple(matches),
        nearest=nearest,
        first=None if matches else _first(x, y, positions, nearest, model),
        norms=float(np.max(np.abs(lengths[1] - lengths[0]) / np.maximum(lengths[0], 1e-300))),
        still=bool(np.abs(y - x).max() <= 1e-9 * np.abs(x).max()),
    )


def rows(before: np.ndarray, after: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both as (n, d), and the position of each row."""
    if before.shape != after.shape:
        raise Refusal(
            Text(
                "before and after must have the same shape, got {one} and {other}",
                "旋转前后的形状必须一样，现在是 {one} 和 {other}",
            ),
            field="after",
            one=str(before.shape),
            other=str(after.shape),
        )
    width = before.shape[-1]
    if width % 2 or not 2 <= width <= MAX_WIDTH:
        raise Refusal(
            Text(
                "a vector must have an even number of dimensions from 2 to {limit}, got {got}",
                "向量的维数必须是 2 到 {limit} 的偶数，现在是 {got}",
            ),
            field="before",
            limit=MAX_WIDTH,
            got=width,
        )
    if not np.abs(before).max() > 0:
        raise Refusal(
            Text("the vectors before turning are all zero: nothing can be seen", "旋转前的向量全是零：什么也看不出来"),
            field="before",
        )
    length = before.shape[-2] if before.ndim > 1 else 1
    x, y = before.reshape(-1, width), after.reshape(-1, width)
    return x, y, start + np.tile(np.arange(length), len(x) // length)


def conventions(d_head: int, base: float, model: ModelRope | None = None) -> Iterator[Convention]:
    """Everything about the angles that is tried; pairing, layout, sign and swap are combined with each."""
    for scaled in (False, True) if model is not None else (False,):
        bases = (model.base,) if scaled else dict.fromkeys((base, *BASES))
        widths = (model.width,) if scaled else [w for w in (d_head, d_head // 2, d_head // 4) if w >= 2 and w % 2 == 0]
        divisors = (1.0,) if scaled else DIVISORS
        for b, width, divisor, offset in itertools.product(bases, widths, divisors, (0, 1, -1)):
            # with half of the head turning, i/width and 2i/d_head are the same
            single = [] if scaled or 2 * width == d_head else ["i/width"]
            whole = ["2i/d_head"] if width < d_head and not scaled else []
            exponents = ("2i/width", *single, *whole)
            for exponent in exponents:
                yield Convention(base=b, width=width, divisor=divisor, offset=offset, exponent=exponent, scaled=scaled)
    for precision in ("bfloat16 frequencies", "bfloat16 angles", "float16 angles"):
        yield Convention(base=base, width=d_head, precision=precision)


def angles(convention: Convention, positions: np.ndarray, d_head: int, model: ModelRope | None) -> np.ndarray:
    """(n, width/2) float64 radians of each position and pair."""
    pairs = np.arange(convention.width // 2)
    if convention.scaled:
        frequencies = model.inv_freq(int(positions.max()) + 1).numpy()
    elif convention.exponent == "2i/width":
        frequencies = inv_freq(convention.width, convention.base).numpy()
    else:
        top = 2 * pairs / d_head if convention.exponent == "2i/d_head" else pairs / convention.width
        frequencies = convention.base**-top
    at = torch.from_numpy((positions + convention.offset) / convention.divisor)
    w = torch.from_numpy(frequencies.copy())
    if convention.precision == "bfloat16 frequencies":
        w = w.to(torch.bfloat16).double()
    theta = torch.outer(at, w)
    if convention.precision in ("bfloat16 angles", "float16 angles"):
        theta = theta.to(getattr(torch, convention.precision.split()[0])).double()
    return theta.numpy()


def _spread(values: np.ndarray, table: str) -> np.ndarray:
    """(n, pairs) -> (n, width): each pair's number at both of its dimensions as the table has them."""
    return np.concatenate([values, values], axis=1) if table == "half" else np.repeat(values, 2, axis=1)


def _quarter(x: np.ndarray, pairing: str) -> np.ndarray:
    """Every pair turned by a quarter: rotate_half or rotate_every_two, (n, width)."""
    if pairing == "half":
        half = x.shape[1] // 2
        return np.concatenate([-x[:, half:], x[:, :half]], axis=1)
    turned = np.empty_like(x)
    turned[:, ::2], turned[:, 1::2] = -x[:, 1::2], x[:, ::2]
    return turned


def turn(x: np.ndarray, theta: np.ndarray, convention: Convention) -> np.ndarray:
    """(n, d) turned as the convention says; what lies behind its width passes unchanged."""
    part = x[:, : convention.width]
    cos, sin = (_spread(f(theta), convention.table) for f in (np.cos, np.sin))
    cos, sin = (sin, cos) if convention.swapped else (cos, sin)
    turned = part * cos + convention.sign * _quarter(part, convention.pairing) * sin
    return np.concatenate([turned, x[:, convention.width :]], axis=1)


def _tried(x, y, positions, base: float, model: ModelRope | None) -> list[Match]:
    """Every convention that comes near on these rows, with its error; never empty."""
    found: list[tuple[float, float, Convention, tuple]] = []
    best, largest = np.inf, np.abs(y).max()
    for one in conventions(x.shape[1], base, model):
        part, rest = x[:, : one.width], x[:, one.width :]
        behind = np.abs(rest - y[:, one.width :]).max(initial=0.0)
        if behind > max(CLOSE * best, 1e-12) * largest:
            continue  # what should pass unchanged did not
        theta = angles(one, positions, x.shape[1], model)
        cos, sin = np.cos(theta), np.sin(theta)
        quarters = {pairing: _quarter(part, pairing) for pairing in PAIRINGS}
        for table in PAIRINGS:
            both = _spread(cos, table), _spread(sin, table)
            for pairing, swapped in itertools.product(PAIRINGS, (False, True)):
                first, second = both[::-1] if swapped else both
                kept, moved = part * first, quarters[pairing] * second
                for sign in (1, -1):
                    error, length = _error(kept + sign * moved, behind, y, one.width)
                    if error <= max(CLOSE * best, 1e-12):
                        best = min(best, error)
                        found.append((error, length, one, (pairing, table, sign, swapped)))
    names = ("pairing", "table", "sign", "swapped")
    return [
        Match(Convention(**{**vars(one), **dict(zip(names, values, strict=True))}), error, length)
        for error, length, one, values in found
        if error <= max(CLOSE * best, 1e-12)
    ]


def _measure(x, y, positions, convention: Convention, model: ModelRope | None) -> Match:
    theta = angles(convention, positions, x.shape[1], model)
    return _compare(turn(x, theta, convention), y, convention)


def _distance(x, y, positions, match: Match, model: ModelRope | None) -> float:
    """Root of the mean square: one wrong number does not hide which convention is meant."""
    convention = match.convention
    expected = turn(x, angles(convention, positions, x.shape[1], model), convention)
    expected[:, : convention.width] *= match.length
    return float(np.sqrt(np.mean((expected - y) ** 2)))


def _compare(turned: np.ndarray, y: np.ndarray, convention: Convention) -> Match:
    behind = np.abs(turned[:, convention.width :] - y[:, convention.width :]).max(initial=0.0)
    return Match(convention, *_error(turned[:, : convention.width], float(behind), y, convention.width))


def _error(part: np.ndarray, behind: float, y: np.ndarray, width: int) -> tuple[float, float]:
    """(relative error, length): after the turned part has got the length that fits best, where that is not its own."""
    mine = y[:, :width]
    large = np.abs(part) > 0.1 * np.abs(part).max()
    # the median: one wrong number must not make all others look wrong
    length = float(np.median(mine[large] / part[large])) if large.any() else 1.0
    if abs(length - 1) < 2e-3 or not 0.5 < length < 4:
        length = 1.0
    error = max(float(np.abs(length * part - mine).max()), behind)
    return error / max(float(np.abs(y).max()), 1e-300), length


def _oddness(convention: Convention, base: float, x: np.ndarray) -> tuple:
    """How far a convention is from what was expected: the usual ones come first."""
    plain = Convention()
    unusual = sum(
        (
            convention.pairing != convention.table,
            convention.sign != plain.sign,
            convention.swapped,
            convention.offset != 0,
            convention.base != base and not convention.scaled,
            convention.divisor != 1,
            convention.width != x.shape[1] and not convention.scaled,
            convention.exponent != plain.exponent,
            convention.precision != plain.precision,
        )
    )
    return unusual, convention.pairing != plain.pairing, convention.scaled


def _first(x, y, positions, match: Match, model: ModelRope | None) -> Difference:
    """The first number beyond the tolerance, or the worst one."""
    convention = match.convention
    expected = turn(x, angles(convention, positions, x.shape[1], model), convention)
    expected[:, : convention.width] *= match.length
    wrong = np.abs(expected - y) > TOLERANCE * np.abs(y).max()
    row, dimension = (
        int(i) for i in np.unravel_index(np.argmax(wrong) if wrong.any() else np.abs(expected - y).argmax(), y.shape)
    )
    return Difference(row, dimension, float(expected[row, dimension]), float(y[row, dimension]))
