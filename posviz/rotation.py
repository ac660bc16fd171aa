"""Frequencies, angles and pairings of rotary and sinusoidal encodings. Everything in float64.

RoFormer, Su et al. 2021, arXiv 2104.09864; the frequencies are those of Vaswani et al. 2017, 1706.03762.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from posviz.types import Refusal, Text, shown

PAIRINGS = ("half", "interleaved")


def whole_tensor(values: torch.Tensor | np.ndarray | Sequence[int]) -> torch.Tensor:
    """Positions or distances of any shape as an int64 tensor; refused when not whole."""
    if isinstance(values, torch.Tensor):
        dtype = str(values.dtype).removeprefix("torch.")
    else:
        given = values
        try:
            values = np.array(values)  # a copy: torch takes neither read-only nor reversed arrays
        except ValueError:  # rows of unequal length
            raise _not_whole(shown(given)) from None
        values = values if values.size else values.astype(np.int64)  # [] is an empty list of whole ones
        dtype = str(values.dtype)
        if dtype == "uint64" and int(values.max()) >= 2**63:
            raise _not_whole(int(values.max()))
        if dtype.startswith("uint"):  # torch knows few of them
            values = values.astype(np.int64)
    if not dtype.startswith(("int", "uint")):
        raise _not_whole(dtype)
    return torch.as_tensor(values).to(torch.int64)


def _not_whole(got: int | str) -> Refusal:
    return Refusal(
        Text("positions must be whole numbers, got {got}", "位置必须是整数，现在是 {got}")
        if isinstance(got, str)
        else Text("positions must be below 2^63, got {got}", "位置必须小于 2^63，现在是 {got}"),
        field="positions",
        got=got,
    )


def as_positions(
    positions: torch.Tensor | np.ndarray | Sequence[int], rows: int | None = None, axes: int = 0
) -> torch.Tensor:
    """Positions as an int64 tensor, (len,), or (len, axes) if ``axes`` says so.

    Refused when not whole, negative or of another shape. rows: a table's number of rows; a position
    at or beyond it is refused, never wrapped.
    """
    tensor = whole_tensor(positions)
    if tensor.shape[1:] != ((axes,) if axes else ()) or not tensor.dim():
        raise Refusal(
            Text(
                "positions must have the shape {want}, got {got}",
                "位置的形状必须是 {want}，现在是 {got}",
            ),
            field="positions",
            want=f"(len, {axes})" if axes else "(len,)",
            got=str(tuple(tensor.shape)),
        )
    if tensor.numel() and int(tensor.min()) < 0:
        raise Refusal(
            Text("positions must not be negative, got {got}", "位置不能是负数，现在是 {got}"),
            field="positions",
            got=int(tensor.min()),
        )
    if rows is not None and tensor.numel() and int(tensor.max()) >= rows:
        raise Refusal(
            Text(
                "position {got} lies beyond a learned table of {rows} rows; allowed are 0 to {last}",
                "位置 {got} 超出了只有 {rows} 行的可学习表；允许 0 到 {last}",
            ),
            field="positions",
            got=int(tensor.max()),
            rows=rows,
            last=rows - 1,
        )
    return tensor


def inv_freq(width: int, base: float) -> torch.Tensor:
    """Angular frequencies w_i = base^(-2i / width), i = 0 .. width/2 - 1, in radians a position.

    Returns (width/2,) float64. width must be even and at least 2.
    """
    if width < 2 or width % 2:
        raise Refusal(
            Text(
                "a width that is turned in pairs must be even and at least 2, got {got}",
                "成对旋转的宽度必须是偶数且不小于 2，现在是 {got}",
            ),
            field="width",
            got=width,
        )
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width
    return torch.pow(torch.tensor(base, dtype=torch.float64), -exponent)


def angles(positions: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """p * w_i: (len,) integer positions and (n,) float64 -> (len, n) float64 radians."""
    return positions.to(torch.float64)[:, None] * frequencies.to(torch.float64)[None, :]


def wavelengths(frequencies: torch.Tensor) -> torch.Tensor:
    """Positions a full turn takes, 2 pi / w: same shape as ``frequencies``."""
    return 2 * math.pi / frequencies


def pair_dims(width: int, pairing: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices of the two dimensions of each pair, two (width/2,) tensors.

    "half" couples (i, i + width/2) as Llama and GPT-NeoX do, "interleaved" (2i, 2i + 1) as GPT-J and
    the RoFormer paper do. One is the other after a permutation of the dimensions.
    """
    i = torch.arange(width // 2)
    if pairing == "half":
        return i, i + width // 2
    if pairing == "interleaved":
        return 2 * i, 2 * i + 1
    raise Refusal(
        Text("`pairing` must be half or interleaved, got {got}", "`pairing` 必须是 half 或 interleaved，现在是 {got}"),
        field="pairing",
        got=shown(pairing),
    )


def permutation(width: int) -> torch.Tensor:
    """P with half(x[P]) = interleaved(x)[P]: first all first members of the pairs, then all second ones."""
    return torch.cat(pair_dims(width, "interleaved"))


def rotate(x: torch.Tensor, theta: torch.Tensor, pairing: str) -> torch.Tensor:
    """Turn each pair of the first ``2 n`` dimensions of x by its angle; the rest passes unchanged.

    x (..., len, e), theta (len, n) radians with 2n <= e -> (..., len, e) in x's dtype.
    The cosines are taken in float64 before they are rounded to x's dtype.
    """
    if not x.is_floating_point():  # their cosines would be rounded to 0 and 1
        raise Refusal(
            Text(
                "the vectors to turn must be floating-point numbers, got {got}",
                "要旋转的向量必须是浮点数，现在是 {got}",
            ),
            field="x",
            got=str(x.dtype).removeprefix("torch."),
        )
    width = 2 * theta.shape[-1]
    first, second = pair_dims(width, pairing)
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    a, b = x[..., first], x[..., second]
    turned = x.clone()
    turned[..., first] = a * cos - b * sin
    turned[..., second] = a * sin + b * cos
    return turned


def shift_map(k: int, frequencies: torch.Tensor, is_cos: torch.Tensor) -> np.ndarray:
    """M_k with PE(p + k) = M_k PE(p) for a sinusoidal table: (d, d) float64, orthogonal, determinant 1.

    frequencies, is_cos: (d,) for each column. For each frequency w the pair (sin, cos) is turned:
    sin((p+k)w) = cos(kw) sin(pw) + sin(kw) cos(pw); cos((p+k)w) = -sin(kw) sin(pw) + cos(kw) cos(pw).
    """
    w = np.asarray(frequencies, dtype=np.float64)
    sines, cosines = np.flatnonzero(~np.asarray(is_cos)), np.flatnonzero(np.asarray(is_cos))
    result = np.zeros((len(w), len(w)))
    result[sines, sines] = result[cosines, cosines] = np.cos(k * w[sines])
    result[sines, cosines] = np.sin(k * w[sines])
    result[cosines, sines] = -np.sin(k * w[sines])
    return result
