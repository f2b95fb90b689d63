"""Rows that each hold a recording: an episode a record, its states and actions one after another in flat lists.

How many steps a row has is told by arrays of two axes, or by a whole number in the row that divides the length of each
list into steps of one width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.recordings import FEWEST, LONGEST, MOST_RECORDINGS, SHORTEST, WIDEST, Recording, streams_of
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard

SAME = 3
"""Rows with one lag, at least: of thousands of rows one may be odd by nature."""


def rows_as_recordings(group: Sequence[Shard]) -> list[Recording]:
    """The rows of all files, as many as are looked at, spread over all; [] where rows hold no steps."""
    shards = [s for s in group if s.columns and s.rows and s.numbers is None]
    total = sum(s.rows for s in shards)
    forms = [_widths(s) for s in shards]
    if total < FEWEST or not shards or not all(forms):
        return []
    step = -(-total // MOST_RECORDINGS)
    return [one for shard, widths in zip(shards, forms, strict=True)
            for row in range(0, shard.rows, step) if (one := _recording(shard, row, widths)) is not None]


def _recording(shard: Shard, row: int, widths: Mapping[str, int]) -> Recording | None:
    arrays = {n: _of_row(shard.columns[n], row).reshape(-1, w) for n, w in widths.items()}
    lengths = {len(a) for a in arrays.values()}
    if len(lengths) != 1 or not SHORTEST <= lengths.pop() <= LONGEST:
        return None
    streams = streams_of(arrays)
    return Recording(_name(shard, row), shard, streams, True) if len(streams) > 1 else None


def _name(shard: Shard, row: int) -> str:
    named = [c for c in shard.columns.values() if c.kind == "text" and len(c.texts) == shard.rows and is_identifier(c)]
    return named[0].texts[row][:40] if named else shard.row(row)


def _of_row(column: Column, row: int) -> Array:
    if column.offsets is None:
        return np.asarray(column.values[row])
    return np.asarray(column.values[column.offsets[row]:column.offsets[row + 1]])


def _widths(shard: Shard) -> dict[str, int]:
    """Of each field that holds steps, how many numbers a step has; {} where fewer than two fields do."""
    fields = {n: c for n, c in shard.columns.items() if _is_list(c) and c.rows == shard.rows}
    deep = {n: int(np.prod(c.row_shape[1:])) for n, c in fields.items() if len(c.row_shape) == 2}
    if len(deep) > 1:
        return deep
    flat = {n: c for n, c in fields.items() if len(c.row_shape) <= 1}
    best: dict[str, int] = {}
    for counted in shard.columns.values():
        if counted.kind == "number" and not counted.row_shape and counted.values.dtype.kind in "iu" and (
                counted.rows == shard.rows and counted.values.min(initial=SHORTEST) >= SHORTEST):
            found = {n: w for n, c in flat.items() if (w := _width(c, counted.values))}
            best = found if len(found) > len(best) else best
    return best if len(best) > 1 else {}


def _is_list(column: Column) -> bool:
    real = column.values.dtype.kind == "f"
    return real and (column.kind == "sequence" or (column.kind == "number" and 1 <= len(column.row_shape) <= 2
                                                   and column.missing is None))


def _width(column: Column, steps: Array) -> int:
    """Numbers of a step, 0 where the lengths are no such multiples of the counts."""
    lengths = column.lengths if column.kind == "sequence" else np.full(column.rows, column.row_shape[0])
    width = int(lengths[0]) // int(steps[0]) if len(lengths) else 0
    return width if 0 < width <= WIDEST and np.array_equal(lengths, width * steps.astype(np.int64)) else 0
