"""The arrays behind the pictures: what an encoding looks like, and how alike it makes positions.

A picture keeps the cheapest description that is still exact (frequencies, a profile along the
diagonals, or the cells themselves), so that a browser can draw 8192 x 1024 cells from a few kilobytes.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from posviz import rotation, similarity
from posviz.encodings.base import Encoding, PositionModule
from posviz.types import MAX_LEN, Dims, Refusal, Text, read_only, shown, whole_number

MAX_SQUARE = 2048  # positions of a position x position matrix
MAX_ROWS = 2 * MAX_LEN  # the longest learned table, and as much beyond its end
MAX_BIAS_CELLS = 4_194_304  # heads x queries x keys of a bias in which more than the distance counts


def wrapped(theta: np.ndarray) -> np.ndarray:
    """Angles in [-pi, pi); NaN where they are not finite."""
    with np.errstate(invalid="ignore"):
        return np.remainder(theta + np.pi, 2 * np.pi) - np.pi


@dataclass(frozen=True, eq=False)
class Waves:
    """Cells sin or cos(p w_c): frequencies (cols,) float64, is_cos (cols,) bool.

    wrap: the cells are the angles p w_c themselves, wrapped to [-pi, pi). start: p of the first row.
    """

    rows: int
    frequencies: np.ndarray
    is_cos: np.ndarray
    wrap: bool = False
    start: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.frequencies)

    def cells(self, r0: int, r1: int, c0: int, c1: int) -> np.ndarray:
        theta = np.arange(r0 + self.start, r1 + self.start)[:, None] * self.frequencies[c0:c1]
        if self.wrap:
            return wrapped(theta)
        return np.where(self.is_cos[c0:c1], np.cos(theta), np.sin(theta))


@dataclass(frozen=True, eq=False)
class Diagonals:
    """Square cells that depend on key - query only: profile (2 rows - 1,) float64, NaN where masked."""

    rows: int
    profile: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.rows

    def cells(self, r0: int, r1: int, c0: int, c1: int) -> np.ndarray:
        return self.profile[np.arange(c0, c1) - np.arange(r0, r1)[:, None] + self.rows - 1]


@dataclass(frozen=True, eq=False)
class Cells:
    """All cells, (rows, cols)."""

    values: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    def cells(self, r0: int, r1: int, c0: int, c1: int) -> np.ndarray:
        return self.values[r0:r1, c0:c1]


@dataclass(frozen=True, eq=False)
class Picture:
    """One heatmap of an encoding.

    view: "table" (position x dimension), "bias" (query x key, one source for each head), "cos", "sin",
    "angle" (position x pair), "distance_table" (key - query x dimension of a head) or "grid" (rows x columns
    of patches: how alike the chosen patch is to each; the chosen one is ``patch``).
    sources: one for each head where view is "bias", otherwise a single one. first_row: what the first
    row is called (0, or -K). limit: the cells lie in -limit .. limit. wavelengths: (cols,) positions, if
    the columns turn. defined_rows: rows beyond it do not exist (a learned table's end).
    """

    view: str
    sources: tuple[Waves | Diagonals | Cells, ...]
    limit: float
    first_row: int = 0
    wavelengths: np.ndarray | None = None
    defined_rows: int = field(default=0)
    patch: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.sources[0].shape

    def values(self, head: int = 0) -> np.ndarray:
        """All cells of one source, (rows, cols) float64."""
        rows, cols = self.shape
        return self.sources[head].cells(0, min(rows, self.defined_rows), 0, cols)


def picture(
    spec: Encoding,
    dims: Dims,
    max_len: int,
    *,
    view: str | None = None,
    seed: int = 0,
    rows: int | None = None,
    patch: tuple[int, int] | None = None,
) -> Picture | None:
    """What ``spec`` looks like for these sizes; None for an encoding that adds nothing.

    view: one of ``spec.pictures`` (default: the first). rows: how many positions to show (default
    max_len); more than max_len show where a learned table ends. patch: (row, column) of the patch to
    which "grid" compares all others (default: the middle). Raises :class:`Refusal`.
    """
    module = spec.build(dims, max_len, torch.Generator().manual_seed(seed))
    if rows is not None and spec.pictures:
        rows = whole_number("rows", rows, 1, MAX_ROWS)
    return picture_of(module, max_len if rows is None else rows, view=view, patch=patch)


def picture_of(
    module: PositionModule, rows: int, *, view: str | None = None, patch: tuple[int, int] | None = None
) -> Picture | None:
    """:func:`picture` of a module that is there, say a trained one; it is left as it is."""
    spec, module = module.spec, copy.deepcopy(module)
    if not spec.pictures:
        return None
    view = spec.pictures[0] if view is None else view
    if view not in spec.pictures:
        raise Refusal(
            Text(
                "`picture` of {name} must be one of {allowed}, got {got}",
                "{name} 的 `picture` 只能是 {allowed} 之一，现在是 {got}",
            ),
            field="picture",
            name=spec.title,
            allowed=", ".join(spec.pictures),
            got=shown(view),
        )
    if view == "grid":
        return _grid(module, patch)
    return _PICTURES[view](module, rows)


def _grid(module: PositionModule, patch: tuple[int, int] | None) -> Picture:
    spec = module.spec
    height, width = spec.grid_height, spec.grid_width
    row, col = (height // 2, width // 2) if patch is None else patch
    row, col = whole_number("row", row, 0, height - 1), whole_number("col", col, 0, width - 1)
    values = read_only(spec.patch_similarity(module.dims, row, col))
    return Picture("grid", (Cells(values),), 1.0, defined_rows=height, patch=(row, col))


def _table(module: PositionModule, rows: int) -> Picture:
    d_model = module.dims.d_model
    defined = rows if module.spec.capabilities.unbounded else min(rows, module.max_len)
    columns = getattr(module.spec, "columns", None)  # (frequencies, is_cos) where the cells are waves
    if columns:
        frequencies, is_cos = (read_only(c) for c in columns(d_model))
        lengths = read_only(rotation.wavelengths(torch.tensor(frequencies)))
        waves = Waves(rows, frequencies, is_cos, start=module.spec.start)
        return Picture("table", (waves,), 1.0, 0, lengths, rows)
    sample = module.sample(defined)
    with torch.no_grad():
        values = read_only(module.double().embed(sample) - sample)
    return table_picture(values, rows)


def table_picture(values: np.ndarray, rows: int | None = None) -> Picture:
    """A table of positions (n, d) that is there, say a trained model's, as a picture of ``rows`` rows (default n)."""
    defined = len(values)
    if np.array_equal(values, narrow := values.astype(np.float32)):
        values = read_only(narrow)  # a float32 parameter says the same in half the memory
    if rows is not None and defined < rows:
        values = read_only(np.pad(values, ((0, rows - defined), (0, 0)), constant_values=np.nan))
    limit = float(np.nanmax(np.abs(values))) or 1.0
    return Picture("table", (Cells(values),), limit, defined_rows=defined)


def _angles(view: str) -> Callable[[PositionModule, int], Picture]:
    def make(module: PositionModule, rows: int) -> Picture:
        limit = np.pi if view == "angle" else 1.0
        frequencies = module.spec.inv_freq(module.dims.d_head)
        lengths = read_only(rotation.wavelengths(frequencies))
        if not module.spec.capabilities.relative:  # rows of a grid: the angle does not grow with the position
            theta = module.spec.angles(range(rows), module.dims.d_head).numpy()
            cells = {"cos": np.cos, "sin": np.sin, "angle": wrapped}[view](theta)
            return Picture(view, (Cells(read_only(cells)),), limit, 0, lengths, rows)
        waves = Waves(
            rows, read_only(frequencies), read_only(np.full(len(frequencies), view == "cos")), view == "angle"
        )
        return Picture(view, (waves,), limit, 0, lengths, rows)

    return make


def _bias(module: PositionModule, rows: int) -> Picture:
    check_square(rows)
    if not module.spec.capabilities.relative:
        squares = bias_squares(module, rows)
        limit = float(np.nanmax(np.abs(squares))) or 1.0
        return Picture("bias", tuple(Cells(s) for s in squares), limit, defined_rows=rows)
    profiles = bias_profiles(module, rows)
    limit = float(np.nanmax(np.abs(profiles))) or 1.0
    return Picture("bias", tuple(Diagonals(rows, read_only(p)) for p in profiles), limit, defined_rows=rows)


def _distance_table(module: PositionModule, rows: int) -> Picture:
    values = read_only(module.weight, np.float64)
    reach = len(values) // 2
    return Picture("distance_table", (Cells(values),), float(np.abs(values).max()), -reach, None, len(values))


_PICTURES: dict[str, Callable[[PositionModule, int], Picture]] = {
    "table": _table,
    "cos": _angles("cos"),
    "sin": _angles("sin"),
    "angle": _angles("angle"),
    "bias": _bias,
    "distance_table": _distance_table,
}


def bias_profiles(module: PositionModule, length: int) -> np.ndarray:
    """(H, 2 length - 1) float64: the bias for key - query = -(length-1) .. length-1, NaN where it needs a mask.

    A bias that looks at the content is taken for queries and keys of ones.
    """
    ones = torch.ones(module.dims.n_heads, 1, module.dims.d_head, dtype=torch.float64)
    keys = ones.expand(-1, 2 * length - 1, -1)
    with torch.no_grad():
        bias = module.double().bias(ones, keys, [length - 1], range(2 * length - 1))
    profiles = bias.expand(module.dims.n_heads, 1, 2 * length - 1)[:, 0].numpy().copy()
    if module.spec.needs_causal_mask:
        profiles[:, length:] = np.nan
    return profiles


def bias_squares(module: PositionModule, length: int, head: int | None = None) -> np.ndarray:
    """(H, length, length) float64, or of one head (1, ...): a bias in which more than the distance counts.

    Computed row by row, for queries and keys of ones; NaN where it needs a mask.
    """
    heads = module.dims.n_heads
    cells = length**2 * (heads if head is None else 1)
    if cells > MAX_BIAS_CELLS:
        raise Refusal(
            Text(
                "{name} is not a matter of distance alone: {cells:,} cells are too many to draw, up to {limit:,}; "
                "take a smaller `max_len` than {got} or fewer heads",
                "{name} 不只取决于距离：{cells:,} 个格子太多，最多画 {limit:,} 个；请把 `max_len` 改得比 {got} 小，或减少头数",
            ),
            field="max_len",
            name=module.spec.title,
            cells=cells,
            limit=MAX_BIAS_CELLS,
            got=length,
        )
    module = module.double()
    keys = torch.ones(heads, length, module.dims.d_head, dtype=torch.float64)
    which = slice(None) if head is None else slice(head, head + 1)
    # Filled in place: a list of rows would keep every head of every row alive, also of those that are not asked for.
    squares = torch.empty(heads if head is None else 1, length, length, dtype=torch.float64)
    with torch.no_grad():
        for m in range(length):
            row = module.bias(keys[:, :1], keys, [m], range(length))
            squares[:, m] = row.expand(heads, 1, length)[which, 0]
    if module.spec.needs_causal_mask:
        squares = squares.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), torch.nan)
    return read_only(squares)


def check_square(length: int) -> None:
    """Refuse a position x position matrix that no screen and no laptop is made for."""
    whole_number("max_len", length, 1, MAX_LEN)
    if length > MAX_SQUARE:
        raise Refusal(
            Text(
                "a position-by-position matrix is drawn for up to {limit} positions, got `max_len` {got}",
                "位置×位置的矩阵最多画 {limit} 个位置，现在 `max_len` 是 {got}",
            ),
            field="max_len",
            limit=MAX_SQUARE,
            got=length,
        )


@dataclass(frozen=True, eq=False)
class Alikeness:
    """How alike an encoding makes positions, for one kind of similarity.

    distances (n,): from 0, or from -(L-1) where the two directions differ (``two_sided``).
    mean, spread (n,): of the similarity at each distance, over all positions. rises: the distances from
    which the mean rises, going away from 0 (negative ones: to the left). matrix: the position x position cells.
    is_bias: the values are what is added to the scores of head ``head``, not a similarity of vectors.
    """

    distances: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    rises: np.ndarray
    matrix: Diagonals | Cells
    is_bias: bool

    def __post_init__(self) -> None:
        for array in (self.distances, self.mean, self.spread, self.rises):
            array.flags.writeable = False  # kept and shared by all sessions

    @property
    def two_sided(self) -> bool:
        return bool(self.distances[0] < 0)


def alikeness(
    spec: Encoding, dims: Dims, length: int, *, kind: str = "dot", head: int = 0, seed: int = 0, max_len: int = 512
) -> Alikeness:
    """Position similarity of any encoding on 0 .. length-1.

    additive: similarity of the table's rows. rotary: of one vector turned to both positions, all its
    entries 1/sqrt(2), so that dot is the kernel sum_i cos(k w_i). bias: the bias of ``head`` itself,
    whatever ``kind`` says. Raises :class:`Refusal`.
    """
    similarity.check_kind(kind)
    check_square(length)
    module = spec.build(dims, max(length, max_len), torch.Generator().manual_seed(seed))
    return alikeness_of(module, length, kind=kind, head=head)


def alikeness_of(module: PositionModule, length: int, *, kind: str = "dot", head: int = 0) -> Alikeness:
    """:func:`alikeness` of a module that is there, say a trained one; it is left as it is."""
    similarity.check_kind(kind)
    check_square(length)
    spec, dims, module = module.spec, module.dims, copy.deepcopy(module)
    with torch.no_grad():
        if spec.kind == "bias":
            head = whole_number("head", head, 0, dims.n_heads - 1)
            if not spec.capabilities.relative:
                return _from_square(bias_squares(module, length, head)[0], is_bias=True)
            profile = bias_profiles(module, length)[head]
            return _from_profile(profile, length, is_bias=True)
        if spec.kind == "rotary":
            same = torch.full((1, length, dims.d_head), 0.5**0.5, dtype=torch.float64)
            q, k = (turned[0] for turned in module.rotate(same, same, range(length), range(length)))
            if not spec.capabilities.relative:
                return _from_square(similarity.between(q, k, kind), is_bias=False)
            right = similarity.between(q[:1], k, kind)[0]  # depends on the distance only
            left = similarity.between(q, k[:1], kind)[:, 0]
            return _from_profile(np.concatenate([left[:0:-1], right]), length, is_bias=False)
        sample = module.sample(length)
        table = module.double().embed(sample) - sample
    return table_alikeness(table.numpy(), kind=kind)


def table_alikeness(values: np.ndarray, *, kind: str = "dot") -> Alikeness:
    """:class:`Alikeness` of the rows of a table (n, d) that is there, say a trained model's."""
    check_square(len(values))
    return _from_square(similarity.matrix(values, kind), is_bias=False)


def _from_square(square: np.ndarray, *, is_bias: bool) -> Alikeness:
    """Means and spreads along the diagonals; of both directions where they differ."""
    length = len(square)
    curve = similarity.diagonals(square)
    cells = Cells(read_only(square))
    if np.allclose(square, square.T, rtol=1e-9, atol=1e-9):
        return Alikeness(np.arange(length), curve.mean, curve.spread, similarity.rises(curve.mean), cells, is_bias)
    left = similarity.diagonals(square.T)
    mean, spread = (np.concatenate([b[:0:-1], a]) for a, b in zip(curve, left, strict=True))
    rises = np.concatenate([-similarity.rises(left.mean)[::-1], similarity.rises(curve.mean)])
    return Alikeness(np.arange(-length + 1, length), mean, spread, read_only(rises), cells, is_bias)


def _from_profile(profile: np.ndarray, length: int, *, is_bias: bool) -> Alikeness:
    right, left = profile[length - 1 :], profile[length - 1 :: -1]
    one_sided = np.allclose(right, left, rtol=1e-12, atol=1e-12) or bool(np.isnan(right[1:]).any())
    forward = left if np.isnan(right[1:]).any() else right
    mean = forward if one_sided else profile
    distances = np.arange(length) if one_sided else np.arange(-length + 1, length)
    rises = similarity.rises(forward)
    if not one_sided:  # going away from 0 on either side
        rises = np.concatenate([-similarity.rises(left)[::-1], rises])
    return Alikeness(
        distances,
        read_only(mean),
        read_only(np.zeros_like(mean)),
        read_only(rises),
        Diagonals(length, read_only(profile)),
        is_bias,
    )
