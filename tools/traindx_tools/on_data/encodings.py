"""Fields that hold one thing twice: a column of texts and a column of whole numbers that stand for them.

Both are of one file, or of two files with as many rows, such as a table and the arrays that were made from it. That
they stand for each other is told by the rows alone: each text has its own number in at least 99 of 100 rows, and rows
in another order would not agree so by chance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.names import number_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View

AGREE = 0.99
"""Share of the rows whose text has its number."""
FEWEST_ROWS = 30
ROWS_PER_TEXT = 5
MOST_TEXTS = 1000
MOST_PAIRS = 300
"""Pairs of fields that are looked at."""
SPARSE = 2
"""Numbers that stand for k texts are below this many times k: larger ones are counts or measures."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """Which number stands for which text, in one part of the data."""

    text: Column
    number: Column
    shard: Shard
    """That holds the numbers."""
    source: Shard
    """That holds the texts; the same one where both are of one file."""
    numbers: Mapping[int, int]
    """By the digest of the text."""
    names: Mapping[int, str]
    rows: Mapping[int, int]
    """How many rows have the text."""
    exceptions: Array
    """int64: rows whose number is that of another text."""

    @property
    def split(self) -> str:
        return self.shard.split


def encodings_of(view: View) -> Iterator[Encoding]:
    """Every pair of such fields. Only files that were read whole are looked at: rows are paired by their place."""
    shards = [s for d in view.sets for s in d.shards if s.columns and s.rows == s.total and s.rows >= FEWEST_ROWS
              and s.numbers is None]
    left = MOST_PAIRS
    for source in shards:
        texts = [(c, *_kinds(_digests(c))) for c in source.columns.values() if _is_text(c)]
        texts = [t for t in texts if _few(t[1], source.rows)]
        for shard in shards if texts else ():
            if shard is not source and not _same_rows(source, shard):
                continue
            for number in shard.columns.values():
                coded = _kinds(number.values) if _is_number(number) else None
                for text, kinds, codes in texts if coded is not None and _few(coded[0], shard.rows) else ():
                    left -= 1
                    if left < 0:
                        return
                    assert coded is not None
                    found = _encoding((text, kinds, codes), (number, *coded), shard, source, view.comparisons)
                    if found is not None:
                        yield found


def _same_rows(source: Shard, shard: Shard) -> bool:
    """Whether two files are the same rows by their names and lengths."""
    stems = [os.path.splitext(os.path.basename(s.name))[0] for s in (source, shard)]
    return source.rows == shard.rows and source.split == shard.split and number_of(stems[0]) == number_of(stems[1])


def _is_text(column: Column) -> bool:
    return (column.kind == "text" and column.digests is not None and column.missing is None
            and len(column.texts) == column.rows)


def _is_number(column: Column) -> bool:
    return (column.kind == "number" and column.values.dtype.kind in "iu" and column.missing is None
            and int(np.prod(column.row_shape)) == 1)


def _digests(column: Column) -> Array:
    return column.digests if column.digests is not None else np.zeros(0, np.uint64)


def _kinds(values: Array) -> tuple[Array, Array]:
    """The distinct values and where each row's stands among them; of many kinds the first rows alone are looked at."""
    flat = values.reshape(-1)
    if len(np.unique(flat[: 20 * MOST_TEXTS])) > MOST_TEXTS:
        return flat[: MOST_TEXTS + 1], np.zeros(0, np.int64)
    kinds, codes = np.unique(flat, return_inverse=True)
    return kinds, codes.reshape(-1)


def _few(kinds: Array, rows: int) -> bool:
    return 2 <= len(kinds) <= min(MOST_TEXTS, rows // ROWS_PER_TEXT)


def _encoding(text: tuple[Column, Array, Array], number: tuple[Column, Array, Array], shard: Shard, source: Shard,
              comparisons: int) -> Encoding | None:
    column, kinds, codes = text
    numbers, values, coded = number
    if abs(len(kinds) - len(values)) > 0.1 * len(kinds) or int(values.min()) < 0:
        return None
    table = np.zeros((len(kinds), len(values)), np.int64)
    np.add.at(table, (codes, coded), 1)
    best = table.argmax(axis=1)
    agree = int(table.max(axis=1).sum())
    if agree < AGREE * len(codes) or len(np.unique(best)) < len(best) or not _unlikely(
            table.sum(axis=1), len(codes) - agree, comparisons):
        return None
    first = np.unique(codes, return_index=True)[1]
    odd = np.flatnonzero(best[codes] != coded)
    return Encoding(
        column, numbers, shard, source,
        numbers={int(k): int(values[b]) for k, b in zip(kinds, best, strict=True)},
        names={int(k): column.texts[int(i)] for k, i in zip(kinds, first, strict=True)},
        rows={int(k): int(n) for k, n in zip(kinds, table.sum(axis=1), strict=True)},
        exceptions=odd[np.isin(values[coded[odd]], values[best])],
    )


def _unlikely(counts: Array, exceptions: int, comparisons: int) -> bool:
    """Whether rows in another order would not agree so by chance.

    Of all orders of the numbers, one of n! / prod(counts!) fits the texts, for each of k! ways to name them; e rows may
    be exceptions, of which there are at most (n k)^e.
    """
    rows, kinds = int(counts.sum()), len(counts)
    orders = math.lgamma(rows + 1) - sum(math.lgamma(int(c) + 1) for c in counts)
    ways = math.lgamma(kinds + 1) + exceptions * math.log(rows * kinds)
    return ways - orders + math.log(comparisons * MOST_PAIRS) < math.log(LEVEL)


def by_fields(found: Sequence[Encoding]) -> Mapping[tuple[str, str, bool], list[Encoding]]:
    """The encodings of each pair of fields over all parts of the data; whether both are of one file."""
    out: dict[tuple[str, str, bool], list[Encoding]] = {}
    for e in found:
        out.setdefault((e.text.name, e.number.name, e.shard is e.source), []).append(e)
    return out


def are_indices(found: Sequence[Encoding]) -> bool:
    """Whether the numbers count the texts of all parts, and are no counts or measures of their own."""
    texts = {t for e in found for t in e.numbers}
    return max(n for e in found for n in e.numbers.values()) <= SPARSE * len(texts)
