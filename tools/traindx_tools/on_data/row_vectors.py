"""What is known of each row of a table as vectors: features in spreads, classes as one-hot codes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import MOST_CLASSES, codes, keys
from traindx_tools.on_data.shard import Shard

MOST_WIDTH = 64
MOST_COLUMNS = 8


def vectors_of(shard: Shard, without: Collection[str]) -> Mapping[str, Array]:
    """float32 (rows, features) about 0, by field, of those that have some."""
    found = {n: v for n, c in shard.columns.items() if n not in without
             and (v := vector_of(c, shard.rows)) is not None}
    return dict(list(found.items())[:MOST_COLUMNS])


def vector_of(column: Column, rows: int) -> Array | None:
    """float32 shape (rows, features), about 0: numbers in spreads, few classes as one-hot codes; None of others."""
    if column.rows != rows or column.missing is not None or column.kind == "sequence":
        return None
    if column.kind == "text" or (column.is_integer and not column.row_shape):
        if column.kind == "text" and column.digests is None:
            return None
        values = keys(column)
        kinds = np.unique(values)
        if len(kinds) <= MOST_CLASSES and len(kinds) < 0.2 * rows:
            hot = np.eye(len(kinds), dtype=np.float32)[codes(column, kinds)]
            return np.asarray((hot - hot.mean(axis=0)) / math.sqrt(len(kinds)), np.float32) if len(kinds) > 1 else None
        if column.kind == "text":
            return None
    if column.values.dtype.kind not in "iuf":
        return None
    flat = np.nan_to_num(np.asarray(column.values, np.float32).reshape(rows, -1))
    if flat.shape[1] > MOST_WIDTH:
        flat = flat @ np.random.default_rng(0).normal(size=(flat.shape[1], MOST_WIDTH)).astype(np.float32)
    spread = flat.std(axis=0)
    if not spread.any():
        return None
    return np.asarray(np.clip((flat - flat.mean(axis=0)) / (spread + 1e-9), -5, 5), np.float32)
