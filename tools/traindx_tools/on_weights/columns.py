"""Norms and keys of columns (input channels of a kernel) from a few rows: the pass over a file sums rows only.

Four blocks of eight rows, spread over the tensor, tell a norm to about a fifth, and columns that are equal there bit by
bit in at least eight different values are not so by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_data.summary import row_digests
from traindx_tools.on_weights.tensor import STORED, Tensor, as_numbers

BLOCKS, ROWS = 4, 8
MOST_COLUMNS = 2**18
_DISTINCT = 8
"""Different values of a column, below which it may be another one by chance."""


@dataclass(frozen=True)
class Columns:
    """Of the second axis: sums of squares and keys (0: none) over the rows that were read."""

    squares: NDArray[np.float64]
    keys: NDArray[np.uint64]
    values: int
    """How many values of each column were read."""


_NONE = Columns(np.zeros(0), np.zeros(0, np.uint64), 0)


def sampled_columns(tensor: Tensor) -> Columns:
    """Nothing where rows or columns are too few or too many. Raises UnreadableInput."""
    if not tensor.matrix or len(tensor.shape) < 2 or not _DISTINCT <= tensor.shape[1] <= MOST_COLUMNS:
        return _NONE
    if tensor.rows < _DISTINCT or tensor.size // tensor.rows > MOST_COLUMNS * 8:
        return _NONE
    width = tensor.nbytes // tensor.rows
    rows = min(tensor.rows, BLOCKS * ROWS)
    count = rows // BLOCKS if tensor.rows > rows else rows
    starts = range(0, tensor.rows - count + 1, max(1, (tensor.rows - count) // (BLOCKS - 1))) if (
        tensor.rows > rows) else range(1)
    read = [part.copy() for start in list(starts)[:BLOCKS]
            for part in tensor.source.parts(start * width, count * width, count * width)]
    stored = np.concatenate(read).view(STORED[tensor.dtype])
    table = np.moveaxis(stored.reshape(-1, *tensor.shape[1:]), 1, 0).reshape(tensor.shape[1], -1)
    numbers = as_numbers(np.ascontiguousarray(table), tensor.dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", numbers, numbers)
    keys = np.where(np.isfinite(squares) & (squares > 0), row_digests(np.ascontiguousarray(table)), np.uint64(0))
    again = _recurring(keys)
    ordered = np.sort(numbers[again], axis=1)
    keys[again[(np.diff(ordered, axis=1) > 0).sum(axis=1) + 1 < _DISTINCT]] = 0
    return Columns(squares, keys, table.shape[1])


def _recurring(keys: NDArray[np.uint64]) -> NDArray[np.intp]:
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.flatnonzero((counts[inverse.reshape(-1)] > 1) & (keys != 0))


def equal_columns(columns: Columns) -> NDArray[np.intp]:
    """Columns that are equal to an earlier one."""
    order = np.argsort(columns.keys, kind="stable")
    keys = columns.keys[order]
    return np.sort(order[1:][(keys[1:] == keys[:-1]) & (keys[1:] != 0)])
