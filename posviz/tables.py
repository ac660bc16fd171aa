"""Tables of positions, learned or uploaded: what is in them, and how much of it is a sinusoid's.

A table is (rows, cols) real numbers, row p for position p. Wang and Chen 2020, "What Do Position Embeddings
Learn?", arXiv 2010.04903, look at learned tables by their neighbours; Wang et al. 2021, "On Position Embeddings
in BERT", ICLR, by what the similarity keeps of the distance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from posviz import files, rotation, similarity
from posviz.types import MAX_LEN, Refusal, Text, read_only, shown

MAX_BYTES = 10_000_000  # of an uploaded file
MAX_COLS = 4096
MAX_NUMBERS = 2_097_152
MAX_PAIRS = 1024  # rows of which every two are compared; of longer tables the first ones
MAX_WAVES = 2048  # rows that sinusoids are fitted to
OUTLIER = 5.0  # robust standard deviations from the median norm
COMPONENTS = 3
PADDING = 8  # times finer than the Fourier frequencies of the rows
BLOCK = 64  # columns transformed at once


def _refuse(en: str, zh: str, **values) -> Refusal:
    return Refusal(Text(en, zh), field="table", **values)


# ---------------------------------------------------------------- reading
def read(data: bytes) -> dict[str, np.ndarray]:
    """The tables in an uploaded file, by name; axes of length 1 in front are dropped, as ViT saves them.

    One that does not fit is refused if it is the only one, and left out if there are others.
    """
    found = files.read(data, limit=MAX_BYTES, cols=MAX_COLS, rows=MAX_LEN)
    tables = {name: table for name, array in found.items() if (table := _squeezed(array)).ndim == 2 and _fits(table)}
    if tables:
        return tables
    first = next(iter(found.values()))
    if len(found) == 1:
        check(first)
    raise _refuse(
        "none of the {n} arrays is a table of 2 to {rows:,} rows: {names}",
        "{n} 个数组里没有 2 到 {rows:,} 行的表：{names}",
        n=len(found),
        rows=MAX_LEN,
        names=shown(", ".join(found), 80),
    )


def likeliest(names: Mapping[str, np.ndarray]) -> str:
    """The name that a table of positions would have, else the first: "wpe.weight", "...position_embeddings.weight"."""
    marks = ("position", "pos_emb", "wpe", "pos")
    return next((name for mark in marks for name in names if mark in name.lower()), next(iter(names)))


def _squeezed(array: np.ndarray) -> np.ndarray:
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    return array


def _fits(array: np.ndarray) -> bool:
    rows, cols = array.shape
    return 2 <= rows <= MAX_LEN and 1 <= cols <= MAX_COLS and array.size <= MAX_NUMBERS


def check(array: np.ndarray) -> np.ndarray:
    """A read-only float64 table: two axes, 2 to 8192 rows, finite numbers; refused otherwise."""
    array = _squeezed(array)
    if array.ndim != 2:
        raise _refuse(
            "a table has two axes, rows and dimensions, got the shape {got}",
            "表应有两个轴：行和维度，现在的形状是 {got}",
            got=str(array.shape),
        )
    if array.dtype.kind not in "fiu":
        raise _refuse("a table holds real numbers, got {got}", "表里必须是实数，现在是 {got}", got=str(array.dtype))
    if not _fits(array):
        raise _refuse(
            "a table has 2 to {rows:,} rows of 1 to {cols:,} numbers, up to {limit:,} in all, got {r:,} × {c:,}",
            "表应有 2 到 {rows:,} 行，每行 1 到 {cols:,} 个数，总共不超过 {limit:,} 个，现在是 {r:,} × {c:,}",
            rows=MAX_LEN,
            cols=MAX_COLS,
            limit=MAX_NUMBERS,
            r=array.shape[0],
            c=array.shape[1],
        )
    table = np.asarray(array, dtype=np.float64)
    finite = np.isfinite(table)
    if not finite.all():
        row, col = (int(n) for n in np.argwhere(~finite)[0])
        raise _refuse(
            "{n:,} cells are no finite numbers, the first one ({got}) in row {row}, dimension {col}: all must be finite",
            "有 {n:,} 个格子不是有限数，第一个（{got}）在第 {row} 行第 {col} 维：必须全是有限数",
            n=int((~finite).sum()),
            got=str(table[row, col]),
            row=row,
            col=col,
        )
    largest = float(np.abs(table).max())
    if largest > 1e100:
        raise _refuse(
            "the largest number is {got:.3g}; up to 1e100 are taken",
            "最大的数是 {got:.3g}；最大取到 1e100",
            got=largest,
        )
    return read_only(table)


# ---------------------------------------------------------------- what is in it
@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each row the other row with the largest cosine. beside: share whose nearest is the one before or after.

    chance: what that share would be if any row were as likely. usual: the commonest distance to the nearest.
    """

    nearest: np.ndarray = field(repr=False)
    beside: float
    chance: float
    usual: int


@dataclass(frozen=True, eq=False)
class Distances:
    """Cosine of rows k apart: mean and spread (standard deviation over p), (n,) float64.

    explained: share of the variance of all pairs' cosines that the distance alone explains (1: purely relative);
    chance: what as many random numbers would give.
    """

    mean: np.ndarray = field(repr=False)
    spread: np.ndarray = field(repr=False)
    explained: float
    chance: float


@dataclass(frozen=True, eq=False)
class Norms:
    """Length of each row, (rows,) float64. outliers: rows farther than OUTLIER robust deviations from the median.

    deviation: 1.4826 times the median distance from the median, a standard deviation that outliers do not move.
    """

    values: np.ndarray = field(repr=False)
    median: float
    deviation: float
    outliers: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components: scores (rows, 3) and the share of the variance that each explains, (3,)."""

    scores: np.ndarray = field(repr=False)
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class Waves:
    """The one sinusoid a + b cos(wp) + c sin(wp) that fits each column best.

    periods, explained: (cols,) positions for a turn, share of the column's variance. total: the share of the whole
    table's variance; chance: the same of random numbers of as many rows.
    """

    periods: np.ndarray = field(repr=False)
    explained: np.ndarray = field(repr=False)
    total: float
    chance: float


@dataclass(frozen=True, eq=False)
class Sinusoids:
    """Beside the sinusoidal table of the same size (base 10000).

    alike: cosine of the two tables' centred similarity matrices (linear CKA), 1 up to rotation and scale. explained: share
    of the variance that a linear map of the sinusoidal table gives; chance: that of a table of random numbers.
    """

    alike: float
    explained: float
    chance: float


@dataclass(frozen=True, eq=False)
class Found:
    """Everything about a table. pairs: how many rows were compared with each other."""

    neighbours: Neighbours
    distances: Distances
    norms: Norms
    components: Components
    waves: Waves
    sinusoids: Sinusoids
    pairs: int


def analyse(table: np.ndarray) -> Found:
    """All of the below for a table (rows, cols) that :func:`check` takes."""
    table = check(table)
    cosines = similarity.matrix(table[:MAX_PAIRS], "cosine")
    return Found(
        neighbours=neighbours(cosines),
        distances=distances(cosines),
        norms=norms(table),
        components=components(table),
        waves=waves(table[:MAX_WAVES]),
        sinusoids=sinusoids(table[:MAX_PAIRS]),
        pairs=len(cosines),
    )


def neighbours(cosines: np.ndarray) -> Neighbours:
    """From the (n, n) cosines of the rows."""
    others = cosines.copy()
    np.fill_diagonal(others, -np.inf)
    nearest = others.argmax(axis=1)
    steps = np.abs(nearest - np.arange(len(nearest)))
    n = len(nearest)
    # an end has one row beside it, the others two
    chance = (2 * (n - 2) + 2) / (n * (n - 1))
    return Neighbours(read_only(nearest), float((steps == 1).mean()), chance, int(np.bincount(steps).argmax()))


def distances(cosines: np.ndarray) -> Distances:
    """From the (n, n) cosines of the rows."""
    n = len(cosines)
    found = similarity.diagonals(cosines)
    pairs = cosines[np.triu_indices(n, 1)]
    whole = pairs.var() * len(pairs)
    within = float((found.spread[1:] ** 2 * np.arange(n - 1, 0, -1)).sum())
    explained = 1 - within / whole if whole > 1e-18 * len(pairs) else 1.0  # all alike: nothing is left to explain
    # n - 1 means from n (n - 1) / 2 numbers
    chance = (n - 2) / max(1, len(pairs) - 1)
    return Distances(read_only(found.mean), read_only(found.spread), max(0.0, explained), chance)


def norms(table: np.ndarray) -> Norms:
    values = np.linalg.norm(table, axis=1)
    median = float(np.median(values))
    away = np.abs(values - median)
    deviation = 1.4826 * float(np.median(away))
    far = OUTLIER * deviation if deviation > 1e-9 * median else 1e-6 * median  # most rows equally long
    return Norms(read_only(values), median, deviation, read_only(np.flatnonzero(away > far)))


def components(table: np.ndarray) -> Components:
    centred = table - table.mean(axis=0)
    rows, cols = centred.shape
    small = centred.T @ centred if cols <= rows else centred @ centred.T
    values, vectors = np.linalg.eigh(small)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    count = min(COMPONENTS, len(values))
    scores = centred @ vectors[:, :count] if cols <= rows else vectors[:, :count] * np.sqrt(values[:count])
    scores = scores * np.where(scores[-1] < scores[0], -1.0, 1.0)  # a component has no sign: let it end above its start
    whole = values.sum()
    shares = values[:count] / whole if whole else np.zeros(count)
    return Components(read_only(scores), read_only(shares))


def waves(table: np.ndarray) -> Waves:
    """Of every column; ``chance`` from normal random numbers, seed 0."""
    periods, explained = _fitted(table)
    weight = table.var(axis=0)
    total = float((explained * weight).sum() / weight.sum()) if weight.sum() else 0.0
    random = np.random.default_rng(0).normal(size=(len(table), BLOCK))
    return Waves(read_only(periods), read_only(explained), total, float(_fitted(random)[1].mean()))


def _fitted(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(cols,) periods and explained shares of each column's best sinusoid, at most two tables' lengths long."""
    parts = [_fitted_block(table[:, c : c + BLOCK]) for c in range(0, table.shape[1], BLOCK)]
    return np.concatenate([p for p, _ in parts]), np.concatenate([e for _, e in parts])


def _fitted_block(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(table)
    centred = table - table.mean(axis=0)
    size = PADDING * n
    power = np.abs(np.fft.rfft(centred, size, axis=0)) ** 2
    lowest = PADDING // 2  # half a turn in the table
    power[:lowest] = 0
    best = power.argmax(axis=0).astype(np.float64)
    # The mean, which was taken off, moves the peak of a slow wave: those are tried as well.
    tried = [best + step for step in (-0.5, 0.0, 0.5)]
    tried += [np.full_like(best, k) for k in range(lowest, PADDING + 1)]
    bins = np.clip(np.stack(tried), lowest, size / 2)
    shares = np.stack([_share(centred, 2 * np.pi * b / size) for b in bins])
    chosen = shares.argmax(axis=0)
    picked = np.arange(table.shape[1])
    return size / bins[chosen, picked], shares[chosen, picked]


def _share(centred: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """(cols,) share of each centred column's variance that a constant, cos(w p) and sin(w p) explain; omega (cols,)."""
    at = np.arange(len(centred))[:, None] - (len(centred) - 1) / 2
    basis = np.stack([np.cos(at * omega), np.sin(at * omega)])  # (2, n, cols); about the middle they are orthogonal
    basis -= basis.mean(axis=1, keepdims=True)
    size = (basis**2).sum(axis=1)
    along = (basis * centred).sum(axis=1)
    whole = (centred**2).sum(axis=0)
    gained = np.divide(along**2, size, out=np.zeros_like(along), where=size > 1e-12 * len(centred)).sum(axis=0)
    return np.divide(gained, whole, out=np.zeros_like(whole), where=whole > 0)


def sinusoids(table: np.ndarray, base: float = 10_000.0) -> Sinusoids:
    """Beside sinusoids of the same width (one more where that is odd)."""
    rows, cols = table.shape
    table = table / (np.abs(table).max() or 1.0)  # the fourth power of its numbers has to be finite
    theta = np.arange(rows)[:, None] * rotation.inv_freq(cols + cols % 2, base).numpy()
    reference = np.concatenate([np.sin(theta), np.cos(theta)], axis=1)
    mine, theirs = (x - x.mean(axis=0) for x in (table, reference))
    # |X'S| against |X'X| and |S'S|: the Gram matrices' inner products, on the smaller side
    left, right = mine @ mine.T, theirs @ theirs.T
    lengths = np.linalg.norm(left) * np.linalg.norm(right)
    alike = float((left * right).sum() / lengths) if lengths else 0.0
    values, vectors = np.linalg.eigh(right)
    span = vectors[
        :, values > 1e-10 * values.max()
    ]  # slow waves are nearly straight lines: fewer directions than columns
    whole = float((mine**2).sum())
    explained = float(((span.T @ mine) ** 2).sum()) / whole if whole else 0.0
    return Sinusoids(alike, explained, span.shape[1] / (rows - 1))
