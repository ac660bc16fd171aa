"""What fewer digits do to positions: the same pictures in float32, bfloat16 and float16, minus float64.

Waves are computed in the narrow type throughout, positions, frequencies and angles included, as careless code
has it: that is where the large errors come from. Everything else is rounded once, at the end.
"""

import numpy as np
import torch

from posviz import similarity, views
from posviz.encodings import Encoding
from posviz.encodings.base import PositionModule
from posviz.rotation import pair_dims, rotate
from posviz.types import Dims, Refusal, Text, read_only, shown

DTYPES = ("float64", "float32", "bfloat16", "float16")
ROUNDED = ("positions", "frequencies", "angle")  # what of p w is rounded: one factor, the other, both and the product
SEEN = 0.1  # radians, six degrees: an error that the eye sees on a clock


def dtype_named(name: str) -> torch.dtype:
    """The torch dtype; :class:`Refusal` for any other name."""
    if name not in DTYPES:
        raise Refusal(
            Text("`dtype` must be one of {allowed}, got {got}", "`dtype` 只能是 {allowed} 之一，现在是 {got}"),
            field="dtype",
            allowed=", ".join(DTYPES),
            got=shown(name),
        )
    return getattr(torch, name)


def angles(positions: torch.Tensor, frequencies: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """p * w in ``dtype`` from the start: (len,) and (n,) -> (len, n) of that dtype."""
    return positions.to(dtype)[:, None] * frequencies.to(dtype)


def rounded_angles(positions: torch.Tensor, frequencies: torch.Tensor, name: str, what: str) -> torch.Tensor:
    """p * w where only ``what`` is rounded to the dtype: (len,) and (n,) -> (len, n) float64.

    "positions": position ids kept in the dtype; "frequencies": inv_freq kept in it; "angle": both, and their product.
    """
    if what not in ROUNDED:
        raise Refusal(
            Text("`rounded` must be one of {allowed}, got {got}", "`rounded` 只能是 {allowed} 之一，现在是 {got}"),
            field="rounded",
            allowed=", ".join(ROUNDED),
            got=shown(what),
        )
    dtype = dtype_named(name)
    if what == "angle":
        return angles(positions, frequencies, dtype).double()
    p, w = positions.double(), frequencies.double()
    p, w = (p.to(dtype).double(), w) if what == "positions" else (p, w.to(dtype).double())
    return p[:, None] * w


def angle_errors(frequencies: np.ndarray, length: int, name: str, what: str) -> np.ndarray:
    """(length, n) radians from the exact angle to the rounded one at positions 0 .. length-1, the short way round."""
    at, w = torch.arange(length), torch.tensor(np.array(frequencies))
    exact = angles(at, w, torch.float64)
    return views.wrapped((rounded_angles(at, w, name, what) - exact).numpy())


def first_seen(errors: np.ndarray, limit: float = SEEN) -> np.ndarray:
    """(n,) int64: the first position at which each pair is wrong by more than limit radians, -1 where none is."""
    wrong = ~(np.abs(errors) <= limit)  # beyond a dtype's range an angle is infinite or no number: wrong as well
    return read_only(np.where(wrong.any(axis=0), wrong.argmax(axis=0), -1))


def score_drift(
    q: np.ndarray, k: np.ndarray, frequencies: np.ndarray, pairing: str, pair: tuple[int, int], name: str, what: str
) -> float:
    """q turned to m times k turned to n with rounded angles, minus the same in float64; pair: (m, n)."""
    scores = []
    w = torch.tensor(np.array(frequencies))
    for dtype in ("float64", name):
        theta = rounded_angles(torch.tensor(pair), w, dtype, what)
        x = torch.tensor(np.stack([q, k]))
        turned = rotate(x, theta, pairing)
        scores.append(float(turned[0] @ turned[1]))
    return scores[1] - scores[0]


def rounded(values: np.ndarray | torch.Tensor, dtype: torch.dtype) -> np.ndarray:
    """Each value as the nearest one of ``dtype``, float64 again."""
    return torch.as_tensor(np.array(values, dtype=np.float64)).to(dtype).double().numpy()


def picture_error(picture: views.Picture, name: str) -> views.Picture:
    """The picture in the dtype minus the picture in float64, cell by cell; angles the short way round."""
    dtype = dtype_named(name)
    sources, limit = [], 0.0
    for head, source in enumerate(picture.sources):
        if isinstance(source, views.Diagonals):
            errors = rounded(source.profile, dtype) - source.profile
            sources.append(views.Diagonals(source.rows, read_only(errors)))
        else:
            exact = np.asarray(picture.values(head), dtype=np.float64)
            errors = (
                _waves(source, len(exact), dtype) if isinstance(source, views.Waves) else rounded(exact, dtype)
            ) - exact
            if isinstance(source, views.Waves) and source.wrap:
                errors = views.wrapped(errors)
            sources.append(views.Cells(read_only(errors)))
        limit = max(limit, float(np.nanmax(np.abs(errors), initial=0.0)))
    rows = picture.defined_rows
    return views.Picture(picture.view, tuple(sources), limit or 1.0, picture.first_row, None, rows, picture.patch)


def _waves(source: views.Waves, rows: int, dtype: torch.dtype) -> np.ndarray:
    theta = angles(torch.arange(source.start, rows + source.start), torch.tensor(source.frequencies), dtype)
    if source.wrap:
        return theta.double().numpy()
    return torch.where(torch.tensor(source.is_cos), theta.cos(), theta.sin()).double().numpy()


def similarity_error(
    spec: Encoding, dims: Dims, length: int, name: str, *, kind: str = "dot", head: int = 0, seed: int = 0
) -> np.ndarray:
    """Position x position similarity in the dtype minus that in float64, (length, length) float64.

    A bias is rounded as it is; tables and rotations are compared by their rows in the dtype.
    """
    views.check_square(length)
    dtype = dtype_named(name)
    module = spec.build(dims, length, torch.Generator().manual_seed(seed)).double()
    if spec.kind == "bias":
        exact = views.alikeness(spec, dims, length, kind=kind, head=head, seed=seed, max_len=length).matrix
        values = exact.cells(0, length, 0, length)
        return rounded(values, dtype) - values
    rows, narrow = (_rows(module, length, d) for d in (torch.float64, dtype))
    return similarity.matrix(narrow, kind) - similarity.matrix(rows, kind)


def _rows(module: PositionModule, length: int, dtype: torch.dtype) -> torch.Tensor:
    """What stands for each position, (length, width), computed in ``dtype``; float64 in the end."""
    spec, at = module.spec, torch.arange(length)
    if spec.kind == "rotary":
        if spec.capabilities.relative:
            theta = angles(at, spec.inv_freq(module.dims.d_head), dtype)
        else:  # rows and columns of a grid are small numbers: only the angle is rounded
            theta = spec.angles(at, module.dims.d_head).to(dtype)
        return torch.cat([theta.cos(), theta.sin()], dim=-1).double()
    if hasattr(spec, "columns"):
        frequencies, is_cos = spec.columns(module.dims.d_model)
        theta = angles(at + spec.start, frequencies, dtype)
        return torch.where(is_cos, theta.cos(), theta.sin()).double()
    sample = module.sample(length)
    with torch.no_grad():
        return (module.embed(sample) - sample).to(dtype).double()


def rotation_error(
    q: np.ndarray, k: np.ndarray, frequencies: np.ndarray, pairing: str, length: int, name: str, scale: float
) -> np.ndarray:
    """Score of q turned to m and k turned to n in the dtype, minus float64: (length, length), [m, n].

    In float64 the score depends on m - n only; with fewer digits it depends on where both stand.
    """
    exact, narrow = (_scores(q, k, frequencies, pairing, length, d) for d in (torch.float64, dtype_named(name)))
    return (narrow - exact) * scale


def _scores(q, k, frequencies, pairing: str, length: int, dtype: torch.dtype) -> np.ndarray:
    theta = angles(torch.arange(length), torch.tensor(np.array(frequencies)), dtype)
    cos, sin = theta.cos(), theta.sin()
    first, second = pair_dims(2 * theta.shape[1], pairing)
    turned = []
    for x in (q, k):
        x = torch.tensor(np.array(x, dtype=np.float64)).to(dtype)
        rows = x.expand(length, -1).clone()  # what lies beyond the rotary width passes
        rows[:, first] = x[first] * cos - x[second] * sin
        rows[:, second] = x[first] * sin + x[second] * cos
        turned.append(rows.double())
    return (turned[0] @ turned[1].T).numpy()
