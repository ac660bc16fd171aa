"""What a model's RoPE does at a length: facts, and the arrays for the pictures of the RoPE workbench.

All frequencies are float64 radians a position; all results read-only numpy. Where a text is long, curves over
distance are given by columns that grow with distance, each with the lowest and highest value found in it.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from posviz.encodings.model_rope import ModelRope
from posviz.rope_scaling import DynamicNtk, Linear, Llama3, NtkAware, Scaling, Yarn, critical_dimension
from posviz.rotation import inv_freq
from posviz.similarity import rope_bound, rope_kernel
from posviz.types import read_only

FURTHEST = 262_144  # how far the context bound is looked for
BLOCK = 512
BLOCKS = 16  # blocks of distances looked at in one go
SAMPLES = 32  # distances looked at in one column
TURN = 2 * math.pi


@dataclass(frozen=True, eq=False)
class Facts:
    """What follows from a model's RoPE and two lengths.

    trained, wanted: positions in training (before extension) and now. turns_trained (pairs,): with the unscaled
    frequencies, as in training; turns_wanted (pairs,): with the scaled ones. unseen: pairs that reach angles
    which no distance in training had. critical_dimension: dimensions that completed a turn in training.
    longest_wavelength: positions for a turn of the slowest pair that turns, scaled. context_bound: the first
    distance at which the sum of cos k w is negative (Men et al. 2024, arXiv 2405.14591), None up to FURTHEST.
    """

    pairs: int
    trained: int
    wanted: int
    attention_factor: float
    turns_trained: np.ndarray
    turns_wanted: np.ndarray
    unseen: int
    critical_dimension: int
    longest_wavelength: float
    context_bound: int | None


def facts(rope: ModelRope, trained: int, wanted: int) -> Facts:
    """The numbers for one model at one length."""
    plain, scaled = rope.unscaled_inv_freq().numpy(), rope.inv_freq(wanted).numpy()
    seen, reached = spans(rope, trained, wanted)
    return Facts(
        pairs=len(plain),
        trained=trained,
        wanted=wanted,
        attention_factor=rope.attention_factor(wanted),
        turns_trained=read_only(trained * plain / TURN),
        turns_wanted=read_only(wanted * scaled / TURN),
        unseen=int((reached > seen * (1 + 1e-9)).sum()),
        critical_dimension=min(critical_dimension(rope.width, rope.base, trained), 2 * int((plain > 0).sum())),
        longest_wavelength=TURN / float(scaled[scaled > 0].min()),
        context_bound=context_bound(rope.inv_freq(wanted)),
    )


def context_bound(frequencies: torch.Tensor) -> int | None:
    """The first distance k >= 1 with sum cos k w_i < 0, or None up to FURTHEST."""
    w = frequencies.to(torch.float64)
    near = torch.outer(torch.arange(BLOCK, dtype=torch.float64), w)
    near_cos, near_sin = near.cos().T, near.sin().T
    blocks = torch.arange(0, FURTHEST + 1, BLOCK, dtype=torch.float64)
    for part in blocks.split(BLOCKS):  # most are found early
        far = torch.outer(part, w)
        # cos (a + b) w = cos aw cos bw - sin aw sin bw: thousands of distances in two products
        kernel = (far.cos() @ near_cos - far.sin() @ near_sin).flatten()
        below = torch.nonzero(kernel < -1e-9)
        if len(below):
            found = int(part[0]) + int(below[0])
            return found if found <= FURTHEST else None
    return None


@dataclass(frozen=True, eq=False)
class Sweep:
    """The same width under many bases, evenly spaced on a log scale: all of the same length.

    bases (n,); frequencies (n, pairs) float64; critical_dimension (n,) int64 within ``length`` positions;
    context_bound (n,) int64, the first distance with sum cos k w < 0, 0 where there is none up to FURTHEST.
    """

    length: int
    bases: np.ndarray
    frequencies: np.ndarray
    critical_dimension: np.ndarray
    context_bound: np.ndarray


LOWEST_BASE, HIGHEST_BASE, PER_DECADE = 1e2, 1e7, 50


def sweep(width: int, length: int) -> Sweep:
    """Every base from 100 to ten million, PER_DECADE of them to a factor of ten."""
    low, high = math.log10(LOWEST_BASE), math.log10(HIGHEST_BASE)
    exponents = np.linspace(low, high, round((high - low) * PER_DECADE) + 1)
    bases = [float(f"{10**exponent:.3g}") for exponent in exponents]
    frequencies = [inv_freq(width, base) for base in bases]
    return Sweep(
        length,
        read_only(np.array(bases)),
        read_only(torch.stack(frequencies).numpy()),
        read_only(np.array([critical_dimension(width, base, length) for base in bases])),
        read_only(np.array([context_bound(w) or 0 for w in frequencies])),
    )


def spans(rope: ModelRope, trained: int, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Which angles each pair meets, as 0 .. span radians, at most a turn: (in training, at the wanted length).

    Two (pairs,) float64: the length times the frequency. A pair that has turned once has met every angle.
    In training the frequencies are the unscaled ones.
    """
    seen = trained * rope.unscaled_inv_freq().numpy()
    reached = wanted * rope.inv_freq(wanted).numpy()
    return read_only(np.minimum(seen, TURN)), read_only(np.minimum(reached, TURN))


def alternatives(rope: ModelRope, trained: int, wanted: int) -> dict[str, tuple[Scaling, np.ndarray]]:
    """Every method that a factor alone fixes, for this model and stretch: kind -> (spec, (pairs,) w'/w).

    YaRN and Llama-3 with their papers' turns (32 and 1; 4 and 1). Empty where the text is not longer than trained.
    """
    factor = wanted / trained
    if factor <= 1 or rope.width == 2:
        return {}
    length = {"original_max_position_embeddings": trained}
    specs = (
        Linear(factor=factor),
        NtkAware(factor=factor),
        DynamicNtk(factor=factor, max_position_embeddings=trained),
        Yarn(factor=factor, **length),
        Llama3(factor=factor, low_freq_factor=1.0, high_freq_factor=4.0, **length),
    )
    plain = Scaling().inv_freq(rope.width, rope.base)
    return {spec.kind: (spec, read_only(spec.inv_freq(rope.width, rope.base, wanted) / plain)) for spec in specs}


def ratio(rope: ModelRope, wanted: int) -> np.ndarray:
    """(pairs,) w'/w: 1 where a pair is kept, 1/factor where it is divided, also for pairs that rest."""
    plain, scaled = rope.unscaled_inv_freq(), rope.inv_freq(wanted)
    return read_only(torch.where(plain > 0, scaled / plain, torch.ones_like(plain)))


def columns(length: int, count: int) -> np.ndarray:
    """(n + 1,) int64: distances at which columns begin, 1 .. length, evenly on a log scale; n <= count."""
    return read_only(np.unique(np.geomspace(1, max(2, length), count + 1).round().astype(np.int64)))


@dataclass(frozen=True, eq=False)
class Curves:
    """Over distance, by columns: edges (n + 1,) int64; low, high (n,) float64 of what was found in each."""

    edges: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _sampled(edges: np.ndarray) -> np.ndarray:
    """(n, SAMPLES) int64 distances in each column: all of them, or SAMPLES spread evenly."""
    first, size = edges[:-1, None], np.diff(edges)[:, None]
    return first + np.minimum(np.arange(SAMPLES) * np.maximum(size, SAMPLES) // SAMPLES, size - 1)


def kernel(frequencies: torch.Tensor, length: int, count: int = 500) -> Curves:
    """The kernel (2/d) sum cos k w over distances 1 .. length - 1 by columns."""
    edges = columns(length, count)
    at = _sampled(edges)
    values = rope_kernel(torch.from_numpy(at.ravel()), frequencies).reshape(at.shape)
    return Curves(edges, read_only(values.min(1)), read_only(values.max(1)))


def bound(frequencies: torch.Tensor, length: int, count: int = 500) -> np.ndarray:
    """RoFormer's bound (2/d) sum |S_j| at the beginning of each column of :func:`columns`: (n,) float64."""
    return read_only(rope_bound(torch.from_numpy(columns(length, count)[:-1].copy()), frequencies))


def needle(rope: ModelRope, wanted: int, *, scaled: bool, count: int = 500) -> Curves:
    """The attention weight of one key equal to its query at each distance, among wanted - 1 random keys.

    Query and key are all ones; the others are standard normal, and enter by the mean of their exponentials,
    exp(variance / 2). So the numbers say what turning alone does, before anything was trained.
    """
    frequencies = rope.inv_freq(wanted) if scaled else rope.unscaled_inv_freq()
    factor = rope.attention_factor(wanted) ** 2 if scaled else 1.0
    curve = kernel(frequencies, wanted, count)
    rest, root = rope.d_head - rope.width, math.sqrt(rope.d_head)
    variance = (rope.width * factor**2 + rest) / rope.d_head
    others = math.log(max(1, wanted - 1)) + variance / 2

    def weight(values: np.ndarray) -> np.ndarray:
        score = (factor * rope.width * values + rest) / root
        return read_only(1 / (1 + np.exp(others - score)))

    return Curves(curve.edges, weight(curve.low), weight(curve.high))
