"""Which rows of a batch carry a symptom: by halving, since a step takes its time.

Nothing is cut out of a batch, whose size the program may have written down: a batch of some rows alone holds these rows
again and again, one without some rows holds others in their places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SHARE, MOST = 0.125, 4
"""Of the batch, and rows: where more than these carry it, it is not a few rows."""

Shown = Callable[[Sequence[int]], bool]
"""Whether a batch of these rows (as many as the batch has) shows the symptom."""


class NoTime(Exception):
    """More runs are needed than there may be."""


@dataclass(frozen=True)
class Rows:
    """Rows that show the symptom alone, of how many; `gone`: it goes where they are left out."""

    found: tuple[int, ...]
    of: int
    gone: bool
    runs: int

    @property
    def carry(self) -> bool:
        """A few rows carry the symptom."""
        return bool(self.found) and self.gone and len(self.found) <= _few(self.of)


def find_rows(count: int, shown: Shown, most: int) -> Rows:
    """The rows of a batch of `count` that show the symptom by themselves. Raises NoTime beyond `most` runs."""
    runs = 0

    def ask(rows: Sequence[int]) -> bool:
        nonlocal runs
        runs += 1
        if runs > most:
            raise NoTime(f"more than {most} runs are needed")
        return shown(rows)

    limit = _few(count)
    showing: list[range] = [range(count)]
    while any(len(part) > 1 for part in showing):
        halves = [half for part in showing for half in (part[:len(part) // 2], part[len(part) // 2:]) if len(half)]
        showing = [half for half in halves if ask(alone(half, count))]
        if len(showing) > limit:  # each holds one at the least
            return Rows((), count, False, runs)
    found = [part[0] for part in showing]
    rest = [i for i in range(count) if i not in set(found)]
    gone = bool(found) and bool(rest) and not ask(without(found, count))
    return Rows(tuple(sorted(found)), count, gone, runs)


def alone(rows: Sequence[int], count: int) -> list[int]:
    """These rows again and again, as many as the batch has."""
    return [rows[i % len(rows)] for i in range(count)]


def without(rows: Sequence[int], count: int) -> list[int]:
    """The batch with others in the places of these rows. Needs a row that is left."""
    rest = [i for i in range(count) if i not in set(rows)]
    left_out = set(rows)
    return [rest[i % len(rest)] if i in left_out else i for i in range(count)]


def most_runs(count: int) -> int:
    """Runs that a few rows of so many take."""
    return 8 * max(1, math.ceil(math.log2(max(2, count)))) + 8


def _few(count: int) -> int:
    return min(MOST, max(1, int(SHARE * count)))
