"""Rows and statistics of arrays that lie on the host: what `on_torch/measures/row_values.py` computes on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.book import SUMS
from traindx_tools.rows.profile import MOST_FEATURES, MOST_IDS, Floats, Profile

WIDTH, MOST_VALUES = 128, 2**18
"""Values of a row that are kept, and values of a batch that are read for its statistics."""


def row_matrix(values: NDArray[Any]) -> tuple[Floats, bool]:
    """float64 shape (rows, SUMS + values) as `rows.book.Book.take` wants it, and whether these are all values."""
    flat = np.asarray(values).reshape(len(values), -1)
    stride = max(1, -(-flat.shape[1] // WIDTH))
    kept = flat[:, ::stride].astype(np.float32)
    sums = np.zeros((len(flat), SUMS))
    sums[:, 0], sums[:, 1], sums[:, 2] = kept.mean(1), kept.std(1), np.abs(kept).max(1, initial=0.0)
    return np.concatenate([sums, kept.astype(np.float64)], 1), stride == 1


def hashes_of(matrix: Floats) -> list[int]:
    """A hash of each row of a matrix, by its values."""
    return [hash(row.tobytes()) for row in matrix[:, SUMS:].astype(np.float32)]


def profile_of(name: str, values: NDArray[Any]) -> Profile:
    """Statistics of one batch of an input."""
    seen = np.asarray(values)
    seen = seen[:max(1, MOST_VALUES // max(1, seen[0].size))]
    x = seen.astype(np.float64)
    whole, nan = float((x == np.round(x)).mean()), float(np.isnan(x).mean())
    head = (float(x.min()), float(x.max()), whole, nan, float(x.mean()), float(x.std()))
    row_shape, dtype = tuple(values.shape[1:]), str(values.dtype)
    if seen.dtype.kind in "iu" and seen.ndim == 2 and seen.shape[1] > 1 and seen.dtype.itemsize > 1:
        ids = np.bincount(np.clip(seen.reshape(-1), 0, MOST_IDS - 1), minlength=MOST_IDS).astype(np.float64)
        return Profile(name, row_shape, dtype, *head, np.zeros((2, 0)), ids, len(seen))
    channels_first = x.ndim >= 4 and x.shape[-1] not in (1, 3, 4) and x.shape[1] in (1, 3, 4)
    moved = np.moveaxis(x, 1, -1) if channels_first else x
    flat = moved.reshape(-1, moved.shape[-1] if moved.ndim > 1 else 1)
    flat = flat[:, ::max(1, -(-flat.shape[1] // MOST_FEATURES))]
    return Profile(name, row_shape, dtype, *head, np.stack([flat.mean(0), flat.std(0)]), np.zeros(0),
                   len(seen))
