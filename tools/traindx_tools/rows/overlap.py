"""How many rows of each evaluated batch were trained on before, and in the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from traindx_tools.rows.book import Book

MOST_ROWS = 200_000
"""Evaluated rows that are compared."""
ALL = 0.95
"""Share of a batch from which it counts as one of training rows altogether."""
MOSTLY = 0.5
"""Share from which it may be training data that is evaluated, a part of which is known: memory is bounded."""
BY_CHANCE = 1e-4
"""Probability below which so many rows are no chance, at the share that the other batches show: a leak is in all."""


@dataclass
class Overlaps:
    """The evaluated batches: hashes, and numbers in their dataset, of their rows, and how many were known then.

    Rows count that were trained on before they were evaluated: who evaluates what comes, and trains on it afterwards,
    leaks nothing. Whether it is all of a batch or a part is asked in the end: before an epoch of training is over, a
    part of the training data is new.
    """

    _batches: list[tuple[tuple[int, ...], tuple[tuple[int, int], ...], int]] = field(default_factory=list)
    _rows: int = 0

    @property
    def rows(self) -> int:
        """Evaluated rows that are compared."""
        return self._rows

    def take(self, trained: Book, hashes: Sequence[int], numbers: Sequence[tuple[int, int]]) -> None:
        """A batch is evaluated. `numbers`: (dataset, row) of each row, or nothing."""
        if self._rows + len(hashes) <= MOST_ROWS:
            self._rows += len(hashes)
            self._batches.append((tuple(hashes), tuple(numbers), _known(trained, hashes, numbers)))

    def counted(self, trained: Book) -> dict[str, int]:
        """Batches and rows: "batches", "rows", "known"; and of those of which all, a part or none is known in the end
        "all", "part", "part rows", "part known"."""
        out = dict.fromkeys(("batches", "rows", "known", "all", "part", "part rows", "part known"), 0)
        ends = [(len(hashes), _known(trained, hashes, numbers), then) for hashes, numbers, then in self._batches]
        kept = [(n, end, then) for n, end, then in ends if then or not end]  # else trained on afterwards
        few = [(n, then) for n, end, then in kept if end < MOSTLY * n]
        share = sum(then for _, then in few) / max(1, sum(n for n, _ in few))
        for n, end, then in kept:
            out["batches"] += 1
            out["rows"] += n
            out["known"] += then
            if end >= ALL * n:
                out["all"] += 1
            elif then and not (few and end >= MOSTLY * n and _tail(end, n, share) < BY_CHANCE):
                out["part"] += 1
                out["part rows"] += n
                out["part known"] += then
        return out


def _tail(known: int, rows: int, share: float) -> float:
    """Probability of at least so many known rows where each is known with this chance (Hoeffding's bound, 1963)."""
    p, q = min(max(share, 1 / (rows + 1)), 1 - 1e-9), known / rows
    if q <= p:
        return 1.0
    divergence = q * math.log(q / p) + ((1 - q) * math.log((1 - q) / (1 - p)) if q < 1 else 0.0)
    return math.exp(-rows * divergence)


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
