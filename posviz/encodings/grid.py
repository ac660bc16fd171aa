"""Positions on a grid of patches, row by row from the top left, for the 2-D encodings."""

from typing import Any

import torch

from posviz.encodings.base import Positions, knob
from posviz.rotation import as_positions, whole_tensor
from posviz.types import Text


def height_knob() -> Any:
    return knob(
        8, Text("grid rows", "网格行数"), Text("Rows of patches in the image.", "图像里有几行图块。"), low=2, high=64
    )


def width_knob() -> Any:
    return knob(
        12,
        Text("grid columns", "网格列数"),
        Text(
            "Token p lies in row p ÷ columns, column p mod columns.", "第 p 个词元：行号是 p 除以列数的商，列号是余数。"
        ),
        low=2,
        high=64,
    )


def rows_and_columns(positions: Positions, width: int) -> torch.Tensor:
    """(len, 2) row and column: given as they are, or one number (len,) cut into rows of ``width``."""
    if whole_tensor(positions).dim() == 2:
        return as_positions(positions, axes=2)
    at = as_positions(positions)
    return torch.stack([at // width, at % width], dim=-1)


def grid_positions(height: int, width: int) -> torch.Tensor:
    """(height * width, 2) row and column of every patch, row by row."""
    return rows_and_columns(torch.arange(height * width), width)


def turned_alike(theta: torch.Tensor, height: int, width: int, row: int, col: int) -> torch.Tensor:
    """Score of a vector of ones with itself, turned to patch (row, col) and to every patch, over its width.

    theta (height * width, pairs): each patch's angles, row by row -> (height, width) float64.
    """
    return (theta - theta[row * width + col]).cos().mean(-1).reshape(height, width)


GRID_SNIPPET = """H, W = spec.grid_height, spec.grid_width
{rows}
chosen = {name}[{row} * W + {col}]  # the patch in row {row}, column {col}
values = ({alike}).reshape(H, W)
"""


def grid_snippet(rows: str, name: str, alike: str, patch: tuple[int, int] | None, size: tuple[int, int]) -> str:
    """The lines that compare a patch (default: the one in the middle) with all; rows: the line that makes ``name``."""
    row, col = patch or (size[0] // 2, size[1] // 2)
    return GRID_SNIPPET.format(rows=rows, name=name, alike=alike, row=row, col=col)
