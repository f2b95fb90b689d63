"""Sets with more rows than are looked at one by one: which rows are, and one pass over all the others.

All shards of a set share one budget, so that a person waits as long for forty files as for four. A shard with few rows
keeps all of them. What is kept are blocks of neighbouring rows, spread evenly, the same in all fields, and the rows
that the pass (`whole_pass.py`) points at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_data.column import Array, at_rows
from traindx_tools.on_data.copies import signed_fields
from traindx_tools.on_data.readers.bounds import PARTS, Bounds, in_blocks
from traindx_tools.on_data.readers.streamed import FEWEST_ROWS, SAMPLE, said_of
from traindx_tools.on_data.shard import Shard, Whole
from traindx_tools.on_data.summary import distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.whole_pass import FieldWatch, Watch, chunks_of, give_back, usual_of

WHOLE_SET = 2**24
"""Values of a set that are all looked at: 64 MiB of float32."""
MOST_SAMPLE = 2**25
"""Values that `FEWEST_ROWS` rows may hold."""


def sampled_set(data: DataSet, bounds: Bounds, vocabulary: int | None = None) -> DataSet:
    """The set with a sample of its rows where it has more values than `WHOLE_SET`; else the set itself."""
    if sum(map(_values, data.shards)) <= WHOLE_SET or not any(map(_may_be_sampled, data.shards)):
        return data
    most = shared_out([s.rows for s in data.shards], _rows_of(data))
    chosen = [in_blocks(s.rows, n) if _may_be_sampled(s) and s.rows > n > 0 else None
              for s, n in zip(data.shards, most, strict=True)]
    rough = replace(data, memo={}, shards=tuple(
        s if c is None else _with_rows(s, c) for s, c in zip(data.shards, chosen, strict=True)))
    everywhere = all(map(_may_be_sampled, data.shards))
    shards = [_of_shard(rough, s, c, bounds, vocabulary, everywhere) if _may_be_sampled(s) else s
              for s, c in zip(data.shards, chosen, strict=True)]
    return replace(data, memo={}, shards=tuple(shards))


def _values(shard: Shard) -> int:
    return sum(int(c.values.size) for c in shard.columns.values())


def _rows_of(data: DataSet) -> int:
    """Rows of all shards together that hold `SAMPLE` values."""
    width = max(_values(s) / max(1, s.rows) for s in data.shards)
    return int(max(PARTS, SAMPLE // max(1.0, width), min(FEWEST_ROWS, MOST_SAMPLE // max(1.0, width))))


def shared_out(rows: Sequence[int], most: int) -> list[int]:
    """How many rows of each shard are looked at: all of the small ones, and the same number of all others."""
    left, out = most, [0] * len(rows)
    for place, i in enumerate(sorted(range(len(rows)), key=lambda i: rows[i])):
        out[i] = min(rows[i], max(PARTS, left // (len(rows) - place)))
        left = max(0, left - out[i])
    return out


def _may_be_sampled(shard: Shard) -> bool:
    """Whether its rows are nothing but fields: neither files, nor names, nor what is known of some rows only."""
    return shard.numbers is None and shard.rows > 0 and shard.rows == shard.total and not (
        shard.row_names or shard.contents or shard.label_images or shard.sizes or shard.raw
        or shard.flat_tops is not None or shard.wraps is not None or shard.left_right is not None
        or shard.deep is not None)


def _with_rows(shard: Shard, rows: Array) -> Shard:
    columns = {n: at_rows(c, rows) for n, c in shard.columns.items()}
    give_back(c.values for c in shard.columns.values())
    return replace(shard, columns=columns, rows=len(rows), numbers=rows)


def _of_shard(rough: DataSet, shard: Shard, chosen: Array | None, bounds: Bounds, vocabulary: int | None,
              everywhere: bool) -> Shard:
    """`everywhere`: whether the pass goes over all shards of the set, so that copies are told by it."""
    sample = next(s for s in rough.shards if s.name == shard.name and s.split == shard.split)
    whole = passed(rough, sample, shard, bounds, vocabulary, everywhere)
    if chosen is None:
        return replace(shard, whole=whole)
    rows = chosen if whole is None else distinct(np.concatenate([chosen, whole.pointed]))
    made = sample if len(rows) == len(chosen) else _with_rows(shard, rows)
    note = said_of(len(rows), shard.total, whole, "tokens" if "tokens" in shard.columns else "rows")
    return replace(made, whole=whole, notes=(*shard.notes, note))


def passed(rough: DataSet, sample: Shard, shard: Shard, bounds: Bounds, vocabulary: int | None, copies: bool
           ) -> Whole | None:
    """What one pass over all rows of a shard finds; None where it has no field of numbers."""
    numbers = {n: c for n, c in shard.columns.items() if c.kind == "number" and c.digests is None}
    if not numbers:
        return None
    fields = {n: FieldWatch(usual_of(sample.columns[n], vocabulary)) for n in numbers}
    signed = signed_fields(rough, sample)
    signed = signed if copies and all(n in numbers for n in signed) and "tokens" not in numbers else ()
    watch = Watch(fields, signed)
    for chunk in chunks_of(numbers, bounds):
        watch.take(chunk)
    digests = np.concatenate(watch.digests) if watch.digests else None
    return Whole(watch.rows, shard.columns, digests, blank=watch.blank, pointed=watch.pointed)
