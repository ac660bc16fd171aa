"""How alike positions are: matrices, curves by distance, the shift map, RoPE's kernel and its bound."""

from typing import NamedTuple

import numpy as np
import torch

from posviz import rotation
from posviz.rotation import shift_map
from posviz.types import Refusal, Text, read_only, shown

__all__ = [
    "KINDS",
    "ByDistance",
    "between",
    "by_distance",
    "check_kind",
    "diagonals",
    "matrix",
    "rises",
    "rope_bound",
    "rope_kernel",
    "shift_map",
]

KINDS = ("dot", "cosine", "scaled")
ANGLES = 2**19  # held at once: 4 MB


def matrix(table: torch.Tensor | np.ndarray, kind: str = "dot") -> np.ndarray:
    """Similarity of every two rows of a (L, d) table: (L, L) float64.

    kind: "dot", "cosine" (a zero row has similarity 0), or "scaled" = dot / (d/2), which is the cosine
    for sinusoids, whose rows all have the squared norm d/2.
    """
    check_kind(kind)
    rows = read_only(table, np.float64)
    if kind == "cosine":
        rows = _unit(rows)
    product = rows @ rows.T
    return product / (rows.shape[1] / 2) if kind == "scaled" else product


def _unit(rows: np.ndarray) -> np.ndarray:
    """Each row divided by its length; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


def between(queries: torch.Tensor, keys: torch.Tensor, kind: str = "dot") -> np.ndarray:
    """Similarity of every row of (Lq, d) with every row of (Lk, d): (Lq, Lk) float64; kinds as :func:`matrix`."""
    check_kind(kind)
    q, k = (read_only(rows, np.float64) for rows in (queries, keys))
    if kind == "cosine":
        q, k = _unit(q), _unit(k)
    product = q @ k.T
    return product / (q.shape[1] / 2) if kind == "scaled" else product


class ByDistance(NamedTuple):
    """mean, spread: (L,) float64 over p of sim(p, p + k) for k = 0 .. L-1 (spread: standard deviation).

    Zero spread means purely relative.
    """

    mean: np.ndarray
    spread: np.ndarray


def by_distance(table: torch.Tensor | np.ndarray, kind: str = "dot") -> ByDistance:
    """Similarity of the rows of a (L, d) table against their distance."""
    return diagonals(matrix(table, kind))


def diagonals(square: np.ndarray) -> ByDistance:
    """Mean and spread of each upper diagonal of a (L, L) matrix."""
    lines = [np.diagonal(square, k) for k in range(len(square))]
    return ByDistance(np.array([d.mean() for d in lines]), np.array([d.std() for d in lines]))


def rises(curve: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """The distances k from which a curve (L,) rises: curve[k + 1] > curve[k]; int32.

    tolerance, relative to the curve's largest value, keeps rounding from counting as a rise.
    """
    curve = np.asarray(curve, dtype=np.float64)
    if len(curve) < 2:
        return np.empty(0, dtype=np.int32)
    return np.flatnonzero(np.diff(curve) > tolerance * np.abs(curve).max()).astype(np.int32)


def rope_kernel(distances: torch.Tensor | np.ndarray, frequencies: torch.Tensor) -> np.ndarray:
    """(2/d) sum_i cos(k w_i): the score of two all-ones vectors k apart, 1 at k = 0. (n,) float64."""
    parts = _parts(rotation.whole_tensor(distances), frequencies)
    return torch.cat([rotation.angles(part, frequencies).cos().mean(dim=1) for part in parts]).numpy()


def _parts(distances: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The distances in parts of about ANGLES angles, so that no large table is held.

    Each of whole 64s: the same instructions compute a number whatever stands beside it.
    """
    return distances.split(64 * max(1, ANGLES // (64 * max(1, len(frequencies)))))


def rope_bound(distances: torch.Tensor | np.ndarray, frequencies: torch.Tensor) -> np.ndarray:
    """RoFormer section 3.4.3: (2/d) sum_{i=1}^{d/2} |S_i|, S_j = sum_{i<j} exp(1j k w_i). (n,) float64.

    It bounds how large a score can be; it falls with distance more steadily than the kernel itself.
    """
    found = []
    for part in _parts(rotation.whole_tensor(distances), frequencies):
        theta = rotation.angles(part, frequencies)
        partial = torch.polar(torch.ones_like(theta), theta).cumsum(dim=1)  # S_1 .. S_{d/2}
        found.append(partial.abs().mean(dim=1))
    return torch.cat(found).numpy()


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise Refusal(
            Text("`kind` must be one of {allowed}, got {got}", "`kind` 只能是 {allowed} 之一，现在是 {got}"),
            field="kind",
            allowed=", ".join(KINDS),
            got=shown(kind),
        )
