"""The checks of what a figure is made from."""

import math
from typing import Any

import numpy as np

from posviz.types import Refusal, Text, read_only, shown

MAX_CELLS = 2048 * 2048  # 57 MB as HTML, without plotly.js; no browser is made for more


def numbers(name: str, values: Any, shape: str) -> np.ndarray:
    """A read-only float64 copy; refused when it is not made of real numbers or has another dimension.

    shape: how it is described, "(rows, cols)"; its commas say how many axes there are.
    """
    axes = shape.count(",") + (not shape.endswith(",)"))
    try:
        array = read_only(values)
    except (TypeError, ValueError):  # ragged lists
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "biuf":  # text, complex numbers, objects
        raise _bad_numbers(name, shape, shown(values))
    if array.ndim != axes or not array.size:
        raise _bad_numbers(name, shape, Text("shape {got}", "形状 {got}").filled(got=array.shape))
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
    return read_only(array, np.float64)


def _bad_numbers(name: str, shape: str, got: Text | str) -> Refusal:
    return Refusal(
        Text(
            "`{name}` must be real numbers of shape {shape} with no axis empty, got {got}",
            "`{name}` 必须是形状为 {shape} 的实数，任何一维都不能为空，现在是 {got}",
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
