"""Tables that say in a column which split each row belongs to, as manifests do: a shard for each split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import splits_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

FEWEST = 8
"""Rows of a split."""


def by_column(data: DataSet) -> tuple[DataSet, ...]:
    """For each file with such a column a set of its splits; files whose name says a split have none."""
    found = []
    for shard in data.shards:
        for column in shard.columns.values():
            said = splits_of(column) if not shard.split else None
            if said is not None:
                names = [s for s in dict.fromkeys(said.tolist()) if s]
                parts = [rows_taken(shard, np.flatnonzero(said == s), s) for s in names]
                found.append(DataSet(data.name, tuple(p for p in parts if p.rows >= FEWEST)))
                break
    return tuple(d for d in found if "train" in d.splits and len(d.splits) > 1)


def rows_taken(shard: Shard, rows: Array, split: str) -> Shard:
    """Some rows of a shard (int64, shape (rows,)), without its fields of sequences; they keep their numbers."""
    numbers = rows if shard.numbers is None else shard.numbers[rows]
    columns = {n: _of(c, rows) for n, c in shard.columns.items() if c.offsets is None}
    names = tuple(shard.row_names[i] for i in rows) if shard.row_names else ()
    return replace(shard, columns=columns, rows=len(rows), total=len(rows), split=split, numbers=numbers,
                   row_names=names, damage=(), contents=None, odd_lengths={})


def _of(column: Column, rows: Array) -> Column:
    return replace(
        column,
        values=column.values[rows],
        digests=None if column.digests is None else column.digests[rows],
        texts=tuple(column.texts[i] for i in rows) if len(column.texts) == column.rows else (),
        missing=None if column.missing is None else column.missing[rows],
    )
