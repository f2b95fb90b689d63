"""How many rows of each evaluated batch were trained on before, and in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traindx_tools.rows.book import Book

MOST_ROWS = 200_000
"""Evaluated rows that are compared."""
ALL = 0.95
"""Share of a batch from which it counts as one of training rows altogether."""


@dataclass
class Overlaps:
    """The evaluated batches: hashes, and numbers in their dataset, of their rows, and how many were known then.

    Rows count that were trained on before they were evaluated: who evaluates what comes, and trains on it afterwards,
    leaks nothing. Whether it is all of a batch or a part is asked in the end: before an epoch of training is over, a
    part of the training data is new.
    """

    _batches: list[tuple[tuple[int, ...], tuple[tuple[int, int], ...], int]] = field(default_factory=list)
    _rows: int = 0

    def take(self, trained: Book, hashes: Sequence[int], numbers: Sequence[tuple[int, int]]) -> None:
        """A batch is evaluated. `numbers`: (dataset, row) of each row, or nothing."""
        if self._rows + len(hashes) <= MOST_ROWS:
            self._rows += len(hashes)
            self._batches.append((tuple(hashes), tuple(numbers), _known(trained, hashes, numbers)))

    def counted(self, trained: Book) -> dict[str, int]:
        """Batches and rows: "batches", "rows", "known"; and of those of which all, a part or none is known in the end
        "all", "part", "part rows", "part known"."""
        out = dict.fromkeys(("batches", "rows", "known", "all", "part", "part rows", "part known"), 0)
        for hashes, numbers, then in self._batches:
            end = _known(trained, hashes, numbers)
            if end and not then:  # its rows were trained on afterwards
                continue
            out["batches"] += 1
            out["rows"] += len(hashes)
            out["known"] += then
            if end >= ALL * len(hashes):
                out["all"] += 1
            elif then:
                out["part"] += 1
                out["part rows"] += len(hashes)
                out["part known"] += then
        return out


def _known(trained: Book, hashes: Sequence[int], numbers: Sequence[tuple[int, int]]) -> int:
    if not numbers:
        return sum(h in trained.hashes for h in hashes)
    empty: set[int] = set()
    return sum(h in trained.hashes or row in trained.numbers.get(dataset, empty)
               for h, (dataset, row) in zip(hashes, numbers, strict=True))


def twins_expected(trained: Book) -> float:
    """The share of new rows that equal some trained one by nature, from pairs of equal rows within batches."""
    if not trained.pairs:
        return 1.0
    return min(1.0, len(trained.hashes) * trained.twins / trained.pairs)
