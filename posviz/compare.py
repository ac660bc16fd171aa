"""Two sentences side by side: which tokens belong together, and how much they differ."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from posviz.types import AttentionTrace, Tokens

Pairs = Sequence[tuple[int, int]]


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


def outputs(a: AttentionTrace, b: AttentionTrace, pairs: Pairs) -> Difference:
    """How much the layer's results differ once tokens are matched."""
    i, j = _indices(pairs)
    per_token = np.abs(a.residual[i] - b.residual[j]).max(axis=1)
    largest = float(per_token.max()) if len(pairs) else float("nan")
    return Difference(per_token, largest, float(np.abs(a.pooled - b.pooled).max()))


def weights(a: AttentionTrace, b: AttentionTrace, pairs: Pairs, key_pairs: Pairs | None = None) -> np.ndarray:
    """(H, M, Mk): attention of A minus attention of B between the M matched queries and Mk matched keys, in A's
    order. key_pairs: of cross-attention, whose keys are other tokens; default the queries' ``pairs``."""
    key_pairs = pairs if key_pairs is None else key_pairs
    return matched(a.weights, pairs, key_pairs, 0) - matched(b.weights, pairs, key_pairs, 1)


def matched(array: np.ndarray, pairs: Pairs, key_pairs: Pairs, side: int) -> np.ndarray:
    """(..., M, Mk) of (..., L, Lk): the rows of matched queries, the columns of matched keys. side: 0 of A, 1 of B."""
    rows, columns = (_indices(p)[side] for p in (pairs, key_pairs))
    if (rows.size, columns.size) == array.shape[-2:] and all((np.diff(x) == 1).all() for x in (rows, columns)):
        return array  # every token in its place: no copy of three million weights
    return array[..., rows[:, None], columns]


def _indices(pairs: Pairs) -> np.ndarray:
    return np.array(pairs, dtype=int).reshape(-1, 2).T
