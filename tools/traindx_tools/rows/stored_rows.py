"""Does reading a row of a data set change what it keeps of the row? Whoever reads tells before and after.

No framework is needed: a few rows of a few data sets are compared before and after each of their reads.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.rows.kept_rows import Column, columns_of, mark_of
from traindx_tools.rows.spent import Spent
from traindx_tools.rows.writing_line import WritingLine

MOST_DATASETS, MOST_ROWS, ENOUGH, VISITS, DEEPEST = 4, 24, 6, 2, 8
"""Datasets, rows of each that are watched, visits of a row after which it is known, and from which on a write counts;
parts of parts of a dataset that are followed."""
_Marks = dict[tuple[str, int], int]


@dataclass(eq=False)
class _Dataset:
    """One dataset, its columns, and by row how often it was read and how often its entry was written to."""

    whole: Callable[[], Any]
    """It is not kept alive."""
    name: str
    columns: tuple[Column, ...]
    reads: tuple[str | None, int | None]
    """Where its class says how a row is read."""
    visits: dict[int, int] = field(default_factory=dict)
    written: dict[tuple[str, int], int] = field(default_factory=dict)
    line: WritingLine | None = None
    """Follows one read of a row that was written to before."""


@dataclass(frozen=True)
class Written:
    """One attribute of a dataset: rows with two visits and more, how many of them were written to at as many."""

    dataset: str
    column: str
    rows: int
    written: int
    visits: int
    file: str | None = None
    line: int | None = None
    known: bool = False
    """The line is the one that writes, and not where the class says how a row is read."""


class StoredRows:
    """Compares the entries of a few rows before and after each read of them."""

    def __init__(self) -> None:
        self._spent = Spent(1.0, 0.01)
        self._seen: list[_Dataset] = []
        self._before: tuple[_Dataset, list[int], _Marks] | None = None

    def asked(self, dataset: Any, index: Any) -> None:
        """Remembers what is kept of the rows that are watched."""
        self._before = None
        if not self._spent.open:
            return
        with self._spent.counted():
            whole, rows = _base(dataset, index)
            seen = self._of(whole)
            if seen is None or not seen.columns:
                return
            rows = [r for r in dict.fromkeys(rows) if self._watched(seen, r)]
            if not rows:
                return
            before = _marks(seen, rows)
            self._before = seen, rows, before
        if seen.line is None and any(n for (_, row), n in seen.written.items() if row in rows):
            seen.line = WritingLine(lambda: _marks(seen, rows) != before)
            seen.line.begin()

    def read(self) -> None:
        """Compares."""
        if self._before is None:
            return
        (seen, rows, before), self._before = self._before, None
        if seen.line is not None:
            seen.line.end()
        with self._spent.counted():
            after = _marks(seen, rows)
            for row in rows:
                seen.visits[row] = seen.visits.get(row, 0) + 1
            for key in before.keys() & after.keys():
                if before[key] != after[key]:
                    seen.written[key] = seen.written.get(key, 0) + 1

    def written(self) -> Iterator[Written]:
        """What was seen of each attribute."""
        for seen in self._seen:
            yield from _judged(seen)

    def let_go(self) -> None:
        """Takes its trace function away."""
        for seen in self._seen:
            if seen.line is not None:
                seen.line.end()

    def _of(self, whole: Any) -> _Dataset | None:
        for seen in self._seen:
            if seen.whole() is whole:
                return seen
        if len(self._seen) >= MOST_DATASETS:
            return None
        self._seen.append(_Dataset(reference(whole), type(whole).__name__, columns_of(whole), _reads(whole)))
        return self._seen[-1]

    def _watched(self, seen: _Dataset, row: int) -> bool:
        count = seen.visits.get(row)
        if count is None:
            if len(seen.visits) >= MOST_ROWS:
                return False
            seen.visits[row] = 0
            return True
        return count < ENOUGH


def _base(dataset: Any, index: Any) -> tuple[Any, list[int]]:
    """The whole dataset behind parts of it, and the numbers of the rows there."""
    rows = [int(i) for i in (index if isinstance(index, (list, tuple)) else [index])
            if isinstance(i, (int, np.integer))]
    for _ in range(DEEPEST):
        indices, inner = getattr(dataset, "indices", None), getattr(dataset, "dataset", None)
        if inner is None or not isinstance(indices, (list, tuple, range, np.ndarray)):
            break
        dataset, rows = inner, [int(indices[r]) for r in rows]
    return dataset, rows


def _marks(seen: _Dataset, rows: list[int]) -> _Marks:
    whole = seen.whole()
    kept = {column.path: column.of(whole) for column in seen.columns}
    found = {(path, row): mark_of(entries, row) for path, entries in kept.items() for row in rows}
    return {key: mark for key, mark in found.items() if mark is not None}


def _judged(seen: _Dataset) -> Iterator[Written]:
    again = [row for row, visits in seen.visits.items() if visits >= VISITS]
    if not again:
        return
    found = seen.line.found if seen.line is not None else None
    file, line = found or seen.reads
    for column in seen.columns:
        counts = [seen.written.get((column.path, row), 0) for row in again]
        yield Written(seen.name, column.path, len(again), sum(n >= VISITS for n in counts),
                      max(counts, default=0), file, line, found is not None)


def _reads(whole: Any) -> tuple[str | None, int | None]:
    """Where the class of a dataset says how a row is read."""
    code = getattr(inspect.getattr_static(type(whole), "__getitem__", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)


def reference(value: Any) -> Callable[[], Any]:
    """A weak reference to a dataset, where its class permits one."""
    try:
        return weakref.ref(value)
    except TypeError:  # a list: it is kept, and lists of a training live as long as it does
        return lambda: value
