"""Two sentences side by side: which tokens belong together, and how much they differ."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from posviz.types import AttentionTrace, Tokens


def match(a: Tokens, b: Tokens) -> tuple[tuple[int, int], ...]:
    """Pairs (i, j) of equal pieces, the nearest occurrences first, each token at most once; sorted by i."""
    return _match(a.ids, b.ids)


@lru_cache(maxsize=128)
def _match(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    places: dict[int, list[int]] = {}
    for j, piece in enumerate(b):
        places.setdefault(piece, []).append(j)
    candidates = sorted((abs(i - j), i, j) for i, piece in enumerate(a) for j in places.get(piece, ()))
    pairs, used_a, used_b = [], set(), set()
    for _, i, j in candidates:
        if i not in used_a and j not in used_b:
            pairs.append((i, j))
            used_a.add(i)
            used_b.add(j)
    return tuple(sorted(pairs))


class Difference(NamedTuple):
    """per_token: (pairs,) largest |difference| of each matched pair's vectors; tokens: the largest of
    them (nan without pairs); pooled: largest |difference| of the two sentence vectors."""

    per_token: np.ndarray
    tokens: float
    pooled: float


def outputs(a: AttentionTrace, b: AttentionTrace, pairs: tuple[tuple[int, int], ...]) -> Difference:
    """How much the layer's results differ once tokens are matched."""
    i, j = _indices(pairs)
    per_token = np.abs(a.residual[i] - b.residual[j]).max(axis=1)
    largest = float(per_token.max()) if len(pairs) else float("nan")
    return Difference(per_token, largest, float(np.abs(a.pooled - b.pooled).max()))


def weights(a: AttentionTrace, b: AttentionTrace, pairs: tuple[tuple[int, int], ...]) -> np.ndarray:
    """(H, M, M): attention of A minus attention of B between the M matched tokens, in A's order."""
    i, j = _indices(pairs)
    return a.weights[:, i[:, None], i] - b.weights[:, j[:, None], j]


def _indices(pairs: tuple[tuple[int, int], ...]) -> np.ndarray:
    return np.array(pairs, dtype=int).reshape(-1, 2).T
