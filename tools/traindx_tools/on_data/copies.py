"""Which rows are copies of which: hashes over the inputs, for exact copies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import input_fields, is_identifier, is_target, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import contained, distinct, mixed
from traindx_tools.on_data.table import DataSet

SHORT_TEXT = 20
"""Characters below which two texts may well be the same."""
MOST_CLASSES = 20
"""Values above which a field that recurs is a measure, unless it is called as targets are."""
FEWEST_NUMBERS, MOSTLY = 3, 0.9
"""Measured numbers that tell a row from all others, and the share of the values of a column that must be its own."""
ROWS_AT_ONCE = 4096
TABLE_BITS = 24.0
"""Of all columns together, that the rows of a table without two columns of fractions must be able to tell apart."""


def signatures(data: DataSet, shard: Shard) -> tuple[Array, Array]:
    """uint64 shape (rows,): a hash of the inputs of each row; int64: the rows that hold enough to be told apart.

    Names, numbers and times of rows are left out: the same row with another number is a copy. Rows that are constant
    (blank pictures) and short texts are left out as well: they recur by nature.
    """
    names = _signed(data, shard)
    out = np.zeros(shard.rows, np.uint64)
    telling = np.zeros(shard.rows, bool)
    single = _is_table(shard, names)
    if single and not _many_rows_possible(shard, names):
        return out, np.empty(0, np.int64)
    for place, name in enumerate(names):
        column, seen = shard.columns[name], shard.summaries[name]
        if len(seen.digests) != shard.rows:
            continue
        out = mixed(out + seen.digests * np.uint64(2 * place + 3))
        telling |= _tells(column.values, column.kind, bool(column.texts), column.offsets)
    telling |= single
    return out, np.flatnonzero(telling)


def _signed(data: DataSet, shard: Shard) -> list[str]:
    """The fields by which a row is told from others, in their order."""
    labels = tuple(n for n in data.labels if n in shard.columns and _is_answer(shard, n))
    return sorted(
        n
        for n in input_fields(shard, labels)
        if (shard.columns[n].kind != "text" or shard.columns[n].digests is not None)
        and not is_identifier(shard.columns[n])
    )


def signed_fields(data: DataSet, sample: Shard) -> tuple[str, ...]:
    """The fields by which rows are told apart, in their order; none where copies say nothing."""
    names = _signed(data, sample)
    return () if _is_table(sample, names) and not _many_rows_possible(sample, names) else tuple(names)


def signed_shards(data: DataSet) -> list[tuple[Shard, Array, Array]]:
    """Each shard with what `signatures` tells of it: over all of its rows, where one pass has seen them."""
    if "signed" not in data.memo:
        data.memo["signed"] = list(_signed_shards(data))
    made: list[tuple[Shard, Array, Array]] = data.memo["signed"]
    return made


def none_recurs(data: DataSet) -> bool:
    """Whether one pass over all rows has seen no inputs twice: nothing more is to be said of copies then."""
    signed_shards(data)
    return bool(data.memo.get("none recurs"))


def _signed_shards(data: DataSet) -> Iterator[tuple[Shard, Array, Array]]:
    shards = [s for s in data.shards if s.rows and s.columns]
    digests = [s.whole.digests for s in shards if s.whole is not None and s.whole.digests is not None]
    if not digests or len(digests) < len(shards):  # hashes of another kind
        yield from ((s, *signatures(data, s)) for s in shards)
        return
    again = _recurring(np.concatenate(digests))
    by_line = any(s.whole is not None and s.whole.telling is not None for s in shards)
    if by_line and not len(again):  # the same inputs may stand beside other ids
        yield from ((s, *signatures(data, s)) for s in shards)
        return
    data.memo["none recurs"] = not len(again)
    yield from ((s.full, d, _telling(data, s, d, again)) for s, d in zip(shards, digests, strict=True))


def _telling(data: DataSet, shard: Shard, digests: Array, recurring: Array) -> Array:
    """The rows that hold enough to be told apart. Only those that recur are looked at: the others are no copies."""
    if shard.whole is not None and shard.whole.telling is not None:
        return shard.whole.telling
    names = _signed(data, shard)
    if _is_table(shard, names):
        return np.arange(len(digests))
    whole = shard.full
    again = np.flatnonzero(contained(digests, recurring))
    telling = np.ones(len(digests), bool)
    telling[again] = False
    for name in names:
        column = whole.columns.get(name)
        if column is not None:
            for start in range(0, len(again), ROWS_AT_ONCE):
                some = again[start : start + ROWS_AT_ONCE]
                telling[some] |= _tells(np.asarray(column.values[some]), "number", False, None)
    return np.flatnonzero(telling)


def _recurring(digests: Array) -> Array:
    """The values that occur more than once, sorted."""
    ordered = np.sort(digests)
    return distinct(ordered[1:][ordered[1:] == ordered[:-1]])


def signatures_of_numbers(shard: Shard) -> tuple[Array, Array, tuple[str, ...]]:
    """The same over the single numbers of each row, its label among them, and the texts that are left out.

    A molecule, a sentence or an address may be written in several ways: what was measured of it is the same. No rows
    where there is no text beside the numbers, or too few rows are possible.
    """
    texts = tuple(n for n, c in shard.columns.items() if c.kind == "text" and c.digests is not None
                  and not is_identifier(c) and shard.summaries[n].distinct_rows > shard.rows / 2)
    names = sorted(n for n, c in shard.columns.items() if texts and c.kind == "number" and not c.row_shape
                   and not is_time(n) and not is_identifier(c) and len(shard.summaries[n].digests) == shard.rows)
    floats = [n for n in names if shard.columns[n].is_float]
    if len(floats) < 2 or not _many_rows_possible(shard, names):
        return np.zeros(shard.rows, np.uint64), np.empty(0, np.int64), ()
    out = np.zeros(shard.rows, np.uint64)
    for place, name in enumerate(names):
        out = mixed(out + shard.summaries[name].digests * np.uint64(2 * place + 3))
    return out, np.arange(shard.rows), texts


def signatures_of_some(shards: Sequence[Shard]) -> tuple[dict[int, tuple[Array, Array]], tuple[str, ...]]:
    """The same over some measured numbers alone, by the shard's `id`, and the columns that are left out.

    A row that was taken over with another number, time and amount keeps what was measured of it. Columns count whose
    values tell nearly all training rows apart, and of which as many held-out values are training values as of the
    one that has most: by chance none is.
    """
    train = [s for s in shards if s.split == "train" and s.rows]
    held = [s for s in shards if s.split not in ("", "train") and s.rows]
    common = [n for n in train[0].columns if all(_measures(s, n) for s in (*train, *held))] if train and held else []
    values = {n: [distinct(np.concatenate([s.summaries[n].digests for s in some])) for some in (train, held)]
              for n in common}
    rows = sum(s.rows for s in train)
    telling = [n for n in common if len(values[n][0]) >= MOSTLY * rows]
    hits = {n: int(np.isin(values[n][1], values[n][0]).sum()) for n in telling}
    most = max(hits.values(), default=0)
    names = [n for n in telling if most and hits[n] >= MOSTLY * most]
    others = tuple(n for n in train[0].columns if n not in names) if train else ()
    if len(names) < FEWEST_NUMBERS or not others:
        return {}, ()
    out = {}
    for shard in (*train, *held):
        made = np.zeros(shard.rows, np.uint64)
        for place, name in enumerate(names):
            made = mixed(made + shard.summaries[name].digests * np.uint64(2 * place + 3))
        out[id(shard)] = (made, np.arange(shard.rows))
    return out, others


def _measures(shard: Shard, name: str) -> bool:
    column = shard.columns.get(name)
    return column is not None and column.is_float and not column.row_shape and not is_time(name) and (
        column.missing is None and len(shard.summaries[name].digests) == shard.rows)


def _is_answer(shard: Shard, name: str) -> bool:
    """Whether a field of few values is what is predicted, or a class; a count of many values is an input."""
    return is_target(name) or shard.summaries[name].distinct_rows <= MOST_CLASSES


def _is_table(shard: Shard, names: Sequence[str]) -> bool:
    """Whether a row holds single numbers, and words at most beside them."""
    columns = [shard.columns[n] for n in names]
    numbers = [c for c in columns if c.kind == "number" and int(np.prod(c.row_shape)) < 4]
    words = [c for c in columns if c.kind == "text" and c.texts and float(np.median(c.values)) < SHORT_TEXT]
    return bool(numbers or not columns) and len(numbers) + len(words) == len(columns)


def _many_rows_possible(shard: Shard, names: Sequence[str]) -> bool:
    """Whether equal rows of a table are no matter of course: by how many values its columns have."""
    floats = [n for n in names if shard.columns[n].is_float]
    if len(floats) >= 2:
        return True
    if sum(_most_bits(shard.columns[n]) for n in names) < TABLE_BITS:
        return False
    return sum(math.log2(max(1, shard.summaries[n].distinct_rows)) for n in names) >= TABLE_BITS


def _most_bits(column: Column) -> float:
    """Bits that a column can tell apart at most, by its type and its rows."""
    rows = math.log2(max(1, column.rows))
    return min(rows, 8.0 * column.values[:1].nbytes) if column.kind == "number" else rows


def _tells(values: Array, kind: str, texts: bool, offsets: Array | None) -> Array:
    if kind == "text":
        return np.asarray(values >= SHORT_TEXT) if texts else np.ones(len(values), bool)
    if offsets is not None:
        return np.asarray(np.diff(offsets) >= 8)
    flat = values.reshape(len(values), -1)
    if flat.shape[1] < 4:
        return np.zeros(len(values), bool)
    varied = _varied(flat[:, :8])
    left = np.flatnonzero(~varied)
    for start in range(0, len(left), 4096):
        rows = left[start : start + 4096]
        varied[rows] = _varied(flat[rows, :512])
    return varied


def _varied(flat: Array) -> Array:
    """Whether rows hold four values at least that differ."""
    part = np.sort(flat, axis=1)
    return np.asarray((part[:, 1:] != part[:, :-1]).sum(axis=1) >= 3)
