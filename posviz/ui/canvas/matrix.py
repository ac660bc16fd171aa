"""The large matrix with its margins: encodings, biases, RoPE angles, attention maps.

A ``Panel`` is a titled ``source`` of cells. A source says just as much as the browser needs to
compute every cell exactly: a sinusoidal table of 8192 x 1024 cells travels as 1024 frequencies.
``bundle`` packs one or two panels (one colour scale, tied crosshairs); ``show`` mounts them. The
JavaScript side is ``matrix.js``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from posviz.ui.canvas.bundle import pack, script, style
from posviz.ui.lang import N_

SCALES = ("signed", "difference", "a", "b", "position", "content")
MAX_WINDOW = 1_000_000
HEIGHT = 560

# English templates; pages pass translations. The browser fills in what stands in braces.
LABELS: dict[str, str] = {
    "save": N_("Save"),
    "reset": N_("Reset zoom"),
    "zoom_in": N_("Zoom in"),
    "zoom_out": N_("Zoom out"),
    "shape": N_("{rows} × {cols}"),  # rows, columns
    "exact": N_("exact, cell by cell"),
    "averaged": N_("averaged {rows} × {cols}"),  # rows, columns of one block
    "row": N_("Position {row}"),  # heading of the bars
    "at": N_("dimension {col}"),  # behind the value at the crosshair
    "column": N_("Dimension {col}"),  # heading of the wave
    "column_info": N_("λ = {value} positions"),  # where col_info is given
    "ruler": N_("λ {value}"),  # ticks made from col_info when zoomed in
    "cell": N_("position {row}, dimension {col}"),  # head of the tooltip
    "value": N_("value {value}"),
    "about": N_("≈ {value}"),  # the block's mean, while the exact cell is not loaded
    "masked": N_("masked"),
    "beyond": N_("beyond the last row of the table"),
    "thumbnails": N_("Heads"),  # accessible name of the row of small matrices
}


def _array(name: str, value: np.ndarray, shape: tuple[int | None, ...], dtypes: tuple[str, ...]) -> None:
    fits = value.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, value.shape, strict=True))
    if not fits or value.dtype.name not in dtypes or 0 in value.shape:
        want = " x ".join("n" if n is None else str(n) for n in shape)
        raise ValueError(
            f"{name} must be a non-empty {want} array of {' or '.join(dtypes)}, got {value.dtype.name} {value.shape}"
        )


def _at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dense:
    """All cells: ``values`` (rows, cols), float32 or float64; NaN and infinities are masked."""

    values: np.ndarray

    def __post_init__(self) -> None:
        _array("values", self.values, (None, None), ("float32", "float64"))

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"kind": "dense"}, {"values": self.values}


@dataclass(frozen=True, kw_only=True, eq=False)
class Sinusoid:
    """cos where ``is_cos``, else sin, of ``(start + row) * omega[col]``.

    With ``wrap`` the cell is that angle itself, in (-pi, pi] (``is_cos`` is ignored).
    ``omega`` (cols,) float64; ``is_cos`` (cols,) bool or uint8.
    """

    omega: np.ndarray
    is_cos: np.ndarray
    rows: int
    start: int = 0
    wrap: bool = False

    def __post_init__(self) -> None:
        _at_least_one(rows=self.rows)
        _array("omega", self.omega, (None,), ("float64",))
        _array("is_cos", self.is_cos, self.omega.shape, ("bool", "uint8"))
        if not np.isfinite(self.omega).all():
            raise ValueError("omega must be finite")

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.omega)

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        spec = {"kind": "sinusoid", "start": int(self.start), "wrap": bool(self.wrap)}
        return spec, {"omega": self.omega, "is_cos": self.is_cos.astype(np.uint8)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Toeplitz:
    """Cells that depend on the distance only: ``value(r, c) = profile[c - r + rows - 1]``.

    ``profile`` (rows + cols - 1,) float64; NaN and infinities are masked cells.
    """

    profile: np.ndarray
    rows: int
    cols: int

    def __post_init__(self) -> None:
        _at_least_one(rows=self.rows, cols=self.cols)
        _array("profile", self.profile, (self.rows + self.cols - 1,), ("float64",))

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"kind": "toeplitz"}, {"profile": self.profile}


@dataclass(frozen=True, kw_only=True, eq=False)
class Overview:
    """Block means of a table too large to send, and exact cells where somebody looks.

    ``means`` (ceil(rows / block[0]), ceil(cols / block[1])) float32; ``window`` exact float32 cells
    from ``(row, col) = window_at``; ``row_values`` (cols,) and ``col_values`` (rows,) float32: the
    exact row and column through ``cross``, for the margins. ``overview`` makes one from a table.
    """

    means: np.ndarray
    block: tuple[int, int]
    rows: int
    cols: int
    window: np.ndarray | None = None
    window_at: tuple[int, int] = (0, 0)
    cross: tuple[int, int] | None = None
    row_values: np.ndarray | None = None
    col_values: np.ndarray | None = None

    def __post_init__(self) -> None:
        (br, bc), float32 = self.block, ("float32",)
        _at_least_one(rows=self.rows, cols=self.cols, block_rows=br, block_cols=bc)
        _array("means", self.means, (math.ceil(self.rows / br), math.ceil(self.cols / bc)), float32)
        if self.window is not None:
            _array("window", self.window, (None, None), float32)
        if self.cross is not None:
            if self.row_values is None or self.col_values is None:
                raise ValueError("cross needs row_values and col_values")
            _array("row_values", self.row_values, (self.cols,), float32)
            _array("col_values", self.col_values, (self.rows,), float32)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    def packed(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        row, col = self.cross if self.cross is not None else (None, None)
        spec = {
            "kind": "overview",
            "block": list(self.block),
            "at": list(self.window_at),
            "row": row,
            "col": col,
        }
        named = {
            "overview": self.means,
            "window": self.window,
            "row": self.row_values,
            "col": self.col_values,
        }
        return spec, {name: array for name, array in named.items() if array is not None}


Source = Dense | Sinusoid | Toeplitz | Overview


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One matrix. ``rows`` may exceed the source's: from ``valid_rows`` on they are hatched.

    ``row_start`` is the position of row 0; ``ruler`` are (column, text) ticks above the cells;
    ``col_info`` (cols,) float64 is one number per column (its wavelength); ``row_labels`` (as many
    as shown rows) and ``col_labels`` (cols) are tokens.
    """

    source: Source
    vmin: float
    vmax: float
    scale: str = "signed"
    title: str = ""
    row_start: int = 0
    rows: int | None = None
    valid_rows: int | None = None
    x_label: str = ""
    y_label: str = ""
    ruler: Sequence[tuple[int, str]] = ()
    col_info: np.ndarray | None = None
    row_labels: Sequence[str] | None = None
    col_labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {self.scale!r}")
        if not (math.isfinite(self.vmin) and math.isfinite(self.vmax) and self.vmin < self.vmax):
            raise ValueError(f"vmin and vmax must be finite and vmin < vmax, got {self.vmin} and {self.vmax}")
        rows, cols = self.source.shape
        if self.valid_rows is not None and not 0 <= self.valid_rows <= rows:
            raise ValueError(f"valid_rows must be between 0 and the source's {rows} rows, got {self.valid_rows}")
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"rows must be at least 1, got {self.rows}")
        if self.col_info is not None:
            _array("col_info", self.col_info, (cols,), ("float64",))
        for name, labels, size in (
            ("row_labels", self.row_labels, self.rows or rows),
            ("col_labels", self.col_labels, cols),
        ):
            if labels is not None and len(labels) != size:
                raise ValueError(f"{name} must have {size} entries, got {len(labels)}")

    def packed(self, prefix: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        source, arrays = _packed_source(self.source, prefix)
        if self.col_info is not None:
            arrays[f"{prefix}.info"] = self.col_info
        rows = self.rows or self.source.shape[0]
        meta = {
            "source": source,
            "title": self.title,
            "rows": rows,
            "row_start": int(self.row_start),
            "valid_rows": min(rows, self.source.shape[0] if self.valid_rows is None else self.valid_rows),
            "masked": _has_masked(self.source),
            "x_label": self.x_label,
            "y_label": self.y_label,
            "ruler": [[int(col), text] for col, text in self.ruler],
            "row_labels": None if self.row_labels is None else list(self.row_labels),
            "col_labels": None if self.col_labels is None else list(self.col_labels),
        }
        return meta, arrays


@dataclass(frozen=True, kw_only=True, eq=False)
class Thumbnail:
    """A small matrix above the large one, say one head; a click sends ``head`` = its index."""

    label: str
    source: Source


def _packed_source(source: Source, prefix: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    spec, arrays = source.packed()
    rows, cols = source.shape
    return {**spec, "rows": rows, "cols": cols}, {f"{prefix}.{name}": array for name, array in arrays.items()}


def _has_masked(source: Source) -> bool:
    _, arrays = source.packed()
    cells = ("values", "profile", "overview", "window")
    return any(not np.isfinite(array).all() for name, array in arrays.items() if name in cells)


def bundle(
    panels: Sequence[Panel],
    *,
    labels: Mapping[str, str],
    alt: str,
    file: str,
    selected: tuple[int, int] | None = None,
    thumbnails: Sequence[Thumbnail] | None = None,
    head: int = 0,
    height: int = HEIGHT,
) -> bytes:
    """One or two panels as one blob for ``show`` or ``standalone_html``.

    ``selected`` = (row, column) moves the crosshair when it changes; ``height`` is that of the
    whole component in CSS pixels, its buttons and thumbnails included; ``file`` names saved files.
    Two panels share one colour scale, the union of theirs; a diverging one is symmetric about zero.
    """
    if not 1 <= len(panels) <= 2:
        raise ValueError(f"panels must be one or two, got {len(panels)}")
    if len({panel.scale for panel in panels}) > 1:
        raise ValueError(f"two panels must share one scale, got {' and '.join(panel.scale for panel in panels)}")
    low, high = min(panel.vmin for panel in panels), max(panel.vmax for panel in panels)
    if panels[0].scale in ("signed", "difference"):
        high = max(abs(low), abs(high))
        low = -high
    if not 0 <= head < max(1, len(thumbnails or ())):
        raise ValueError(f"head must be below {len(thumbnails or ())}, the number of thumbnails, got {head}")
    arrays: dict[str, np.ndarray] = {}
    packed_panels, packed_thumbnails = [], []
    for i, panel in enumerate(panels):
        meta, own = panel.packed(f"p{i}")
        packed_panels.append(meta)
        arrays |= own
    for i, thumbnail in enumerate(thumbnails or ()):
        source, own = _packed_source(thumbnail.source, f"t{i}")
        packed_thumbnails.append({"label": thumbnail.label, "source": source})
        arrays |= own
    meta = {
        "labels": {**LABELS, **labels},
        "alt": alt,
        "file": file,
        "height": height,
        "scale": panels[0].scale,
        "vmin": float(low),
        "vmax": float(high),
        "panels": packed_panels,
        "thumbnails": packed_thumbnails,
        "head": head,
        "selected": None if selected is None else [int(n) for n in selected],
    }
    return pack(meta, arrays)


def block_means(table: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """Means over blocks of ``table`` (rows, cols), float32; NaN and infinities are left out."""
    finite = np.isfinite(table)
    edges = [np.arange(0, size, step) for size, step in zip(table.shape, block, strict=True)]

    def total(cells: np.ndarray) -> np.ndarray:
        return np.add.reduceat(np.add.reduceat(cells, edges[0], axis=0, dtype=np.float64), edges[1], axis=1)

    count = total(finite)
    sums = total(table if finite.all() else np.where(finite, table, 0))
    means = np.divide(sums, count, out=np.full_like(sums, np.nan), where=count > 0)
    return means.astype(np.float32)


def window_of(value: object, shape: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """The component's ``window`` state as (r0, r1, c0, c1) inside ``shape``, else None.

    The value comes from a browser and may be stale (another table's) or forged.
    """
    if not isinstance(value, list | tuple) or len(value) != 4:
        return None
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in value):
        return None
    r0, r1, c0, c1 = (int(n) for n in value)
    r0, r1 = max(0, r0), min(shape[0], r1)
    c0, c1 = max(0, c0), min(shape[1], c1)
    if r0 >= r1 or c0 >= c1 or (r1 - r0) * (c1 - c0) > MAX_WINDOW:
        return None
    return r0, r1, c0, c1


def overview(
    table: np.ndarray,
    *,
    window: object = None,
    cross: tuple[int, int] | None = None,
    means: np.ndarray | None = None,
    budget: tuple[int, int] = (1024, 512),
) -> Overview:
    """An ``Overview`` of a large ``table`` (rows, cols).

    ``window`` is the state value of that name, unchecked; ``cross`` = (row, col) adds that exact
    row and column; ``means`` are the cached ``block_means`` of the same table and block
    (``overview_block(table.shape, budget)``).
    """
    rows, cols = table.shape
    block = overview_block((rows, cols), budget)
    where = window_of(window, (rows, cols))
    cells = None if where is None else table[where[0] : where[1], where[2] : where[3]].astype(np.float32)
    if cross is not None:
        cross = (min(max(0, int(cross[0])), rows - 1), min(max(0, int(cross[1])), cols - 1))
    return Overview(
        means=block_means(table, block) if means is None else means,
        block=block,
        rows=rows,
        cols=cols,
        window=cells,
        window_at=(0, 0) if where is None else (where[0], where[2]),
        cross=cross,
        row_values=None if cross is None else table[cross[0]].astype(np.float32),
        col_values=None if cross is None else table[:, cross[1]].astype(np.float32),
    )


def overview_block(shape: tuple[int, int], budget: tuple[int, int] = (1024, 512)) -> tuple[int, int]:
    """The block that brings ``shape`` within ``budget`` rows and columns of means."""
    return max(1, math.ceil(shape[0] / budget[0])), max(1, math.ceil(shape[1] / budget[1]))


_COMPONENT = st.components.v2.component("posviz_matrix", css=style("matrix"), js=script("matrix"))


def _nothing() -> None:
    pass


def show(
    data: bytes,
    *,
    key: str,
    height: int = HEIGHT,
    on_cell: Callable[[], None] = _nothing,
    on_head: Callable[[], None] = _nothing,
) -> Any:
    """Mount a bundle (made with the same ``height``).

    Returns ``.cell`` ({"panel", "row", "col"} of the last click), ``.head`` (index of the clicked
    thumbnail) and ``.window`` ([r0, r1, c0, c1] that an ``Overview`` lacks), each None until the
    person acts. They are in ``st.session_state[key]`` before mounting, where the next bundle
    needs them.
    """
    return _COMPONENT(
        key=key,
        data=data,
        height=height,
        on_cell_change=on_cell,
        on_head_change=on_head,
        on_window_change=_nothing,
    )
