"""Always on: does reading a row of the dataset change what the dataset keeps of it (T728)?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_torch.drawn import DEEPEST
from traindx_tools.on_torch.measures.datasets import reference
from traindx_tools.on_torch.measures.kept_rows import Column, columns_of, mark_of
from traindx_tools.on_torch.measures.writing_line import WritingLine
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t728_reading_writes
from traindx_tools.on_torch.rules.t728_reading_writes import VISITS, Written
from traindx_tools.rows.spent import Spent

MOST_DATASETS, MOST_ROWS, ENOUGH = 4, 24, 6
"""Datasets, rows of each that are watched, and visits of a row after which it is known."""
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


class StoredRowsProbe(TorchProbe):
    """Compares the entries of a few rows before and after each read of them, where the reading process trains."""

    name = "stored-rows"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._spent = Spent(1.0, 0.01)
        self._seen: list[_Dataset] = []
        self._before: tuple[_Dataset, list[int], _Marks] | None = None

    def next_look(self) -> int:
        """Reading is no moment of a training step."""
        return self.NEVER

    def rows_asked(self, dataset: Any, index: Any) -> None:
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

    def rows_read(self, dataset: Any, index: Any) -> None:
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

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for seen in self._seen:
            for written in _judged(seen):
                yield from t728_reading_writes.check(written, self.scene.step, self.scene.recorder.rank)

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
