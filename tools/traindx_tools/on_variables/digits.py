"""Columns whose offset takes up the digits of their number format: seconds since 1970 in float32 come in steps of 128.

A float of `p` bits holds every integer up to 2**p (24 of float32, 11 of float16, 8 of bfloat16; IEEE 754). A column
that lies far from zero and close together beyond that loses what distinguishes its rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_variables.visiting import is_of_jax

BITS = {"float32": 24, "float16": 11, "bfloat16": 8}
"""Bits of the significand, with the hidden one."""
MOST_ROWS, MOST_COLUMNS = 20_000, 64
FEWEST, DISTINCT = 64, 4
"""Rows and different values below which a column says nothing."""
OFFSET = 0.05
"""Spread over magnitude below which a column is an offset and something small; prices or counts have none."""
CLOSE = 8.0
"""Steps of the format between neighbouring values, in the median, up to which rounding matters: by half a step of 8 a
value is off by 6 % of the distance to its neighbour."""


@dataclass(frozen=True)
class Digits:
    """One such column. `column`: "" where there is one only. `step`: between neighbouring floats at its offset."""

    column: str
    dtype: str
    low: float
    high: float
    step: float
    rows: int
    distinct: int


def lost_digits(value: Any) -> Iterator[Digits]:
    """The columns of an array of shape (N,) or (N, C), of a tensor, or of a table of pandas."""
    for name, dtype, column in _columns(value):
        found = judged(name, dtype, column)
        if found is not None:
            yield found


def judged(name: str, dtype: str, column: np.ndarray) -> Digits | None:
    """One column as float64, of what was `dtype`."""
    x = column[np.isfinite(column)]
    if len(x) < FEWEST or dtype not in BITS:
        return None
    low, high = float(x.min()), float(x.max())
    size = max(abs(low), abs(high))
    if size < 2.0 ** BITS[dtype] or high - low > OFFSET * size or low * high < 0:
        return None
    step = 2.0 ** (np.floor(np.log2(size)) + 1 - BITS[dtype])
    values = np.unique(x)
    if len(values) < DISTINCT or float(np.median(np.diff(values))) > CLOSE * step:
        return None
    return Digits(name, dtype, low, high, step, len(x), len(values))


def _columns(value: Any) -> Iterator[tuple[str, str, np.ndarray]]:
    if hasattr(value, "dtypes") and hasattr(value, "iloc"):
        yield from _of_table(value)
        return
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in BITS or value.ndim not in (1, 2) or len(value) < FEWEST:
        return
    value = np.asarray(value) if is_of_jax(value) else value  # slicing it would compile
    part = value[:MOST_ROWS] if value.ndim == 1 else value[:MOST_ROWS, :MOST_COLUMNS]
    plain = part if isinstance(part, np.ndarray) else part.detach().to(sys.modules["torch"].float64).numpy()
    wide = np.asarray(plain, np.float64)
    if wide.ndim == 1:
        yield "", dtype, wide
    else:
        yield from ((f"[:, {i}]", dtype, wide[:, i]) for i in range(wide.shape[1]))


def _of_table(table: Any) -> Iterator[tuple[str, str, np.ndarray]]:
    if not hasattr(table, "columns"):
        if str(table.dtype) in BITS:
            yield "", str(table.dtype), table.iloc[:MOST_ROWS].to_numpy(np.float64)
        return
    for i, dtype in enumerate(table.dtypes.iloc[:MOST_COLUMNS] if len(table.columns) else ()):
        if str(dtype) in BITS:
            yield f"[{table.columns[i]!r}]", str(dtype), table.iloc[:MOST_ROWS, i].to_numpy(np.float64)
