"""The checks of what a figure is made from."""

import math
from typing import Any

import numpy as np

from posviz.types import Refusal, Text, read_only, shown

MAX_CELLS = 2048 * 2048  # 45 MB as a standalone file; no browser is made for more


def numbers(name: str, values: Any, shape: str) -> np.ndarray:
    """A read-only float64 copy; refused when it is not made of real numbers or has another dimension.

    shape: how it is described, "(rows, cols)"; its commas say how many axes there are.
    """
    axes = shape.count(",") + (not shape.endswith(",)"))
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = read_only(values, np.float64)
    except (TypeError, ValueError):  # text, ragged lists, complex numbers
        got = shown(type(values).__name__)
        raise _bad_numbers(name, shape, Text(f"a {got} that is not", f"{got}，内容不符")) from None
    if array.ndim != axes or not array.size:
        got = str(array.shape)
        raise _bad_numbers(name, shape, Text(f"shape {got}", f"形状 {got}"))
    if array.size > MAX_CELLS:
        raise Refusal(
            Text(
                "a figure holds up to {limit:,} values, got `{name}` of shape {got}; "
                "take a part of it, or average blocks",
                "一张图最多 {limit:,} 个数，现在 `{name}` 的形状是 {got}；请截取一部分，或按块取平均",
            ),
            field=name,
            name=name,
            limit=MAX_CELLS,
            got=str(array.shape),
        )
    return array


def _bad_numbers(name: str, shape: str, got: Text) -> Refusal:
    return Refusal(
        Text(
            "`{name}` must be real numbers of shape {shape}, none of them zero, got {got}",
            "`{name}` 必须是形状为 {shape} 的实数，各维都不为零，现在是 {got}",
        ),
        field=name,
        name=name,
        shape=shape,
        got=got,
    )


def masked(values: np.ndarray) -> np.ndarray:
    """The values, NaN where they are not finite: those cells stay empty."""
    return read_only(np.where(np.isfinite(values), values, np.nan))


def largest(values: np.ndarray) -> float:
    """The largest size of a finite value, 0 without one."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def checked_limit(limit: float | None, otherwise: float) -> float:
    """The end of a colour scale; refused when it is not a finite number above 0."""
    if limit is None:
        return otherwise or 1.0
    good = isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool)
    if not good or not 0 < limit < math.inf:
        raise Refusal(
            Text("`limit` must be a finite number above 0, got {got}", "`limit` 必须是大于 0 的有限数，现在是 {got}"),
            field="limit",
            got=shown(repr(limit) if isinstance(limit, str) else limit),
        )
    return float(limit)
