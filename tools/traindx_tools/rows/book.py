"""The rows that a model was trained on and evaluated on, in bounded memory: what they held and how they were answered.

A row is known by its number in its dataset where the sampler says it, else by its values. Of each the first values are
kept, its label, and loss and answer at its first, second, third, fifth, ninth ... visit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.profile import Floats

MOST_ROWS = 20_000
"""Rows of each role whose values are kept: 128 float32 each, 10 MiB."""
MOST_HASHES = 200_000
"""Rows of each role that are known again: 20 MiB."""
VISITS = (1, 2, 3, 5, 9, 17, 33, 65)
"""Visits of a row at which its loss is kept; the last kept one stands for all later ones."""
STARTS = 5
"""Batches whose loss is that of the beginning."""
SUMS = 3
"""Columns before a row's values: its mean, its standard deviation, its largest absolute value."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What the loss said of the rows of one batch, shape (rows,) each.

    `kind`: "classes" (one class a row), "tokens" (several), "squared" (one number) or "other".
    """

    kind: str
    label: Floats
    loss: Floats
    answer: Floats
    """The class that the model named, or the number; NaN where it is none."""


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """The kept rows of one role, in the order of the dataset where `numbered`, else of their first visit."""

    order: NDArray[np.int64]
    numbered: bool
    sums: Floats
    x: Floats
    kind: str
    label: Floats
    loss: Floats
    """Shape (rows, visits); NaN where there was none."""
    answer: Floats
    spread: Floats
    """Shape (rows, visits): standard deviation of the row's values; NaN where there was no visit."""
    relabelled: NDArray[np.int64]
    """Visits at which a row had the values of its first visit and another label than there."""
    unchanged: NDArray[np.int64]
    """All later visits at which it had those values."""
    visits: NDArray[np.int64]
    whole: bool = True
    """The values are all that there is of a row, and not a sample of them."""
    ids: bool = False
    """And they are token ids."""
    start: float = float("nan")
    """The mean loss of the first batches."""

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.order)


@dataclass
class _Slots:
    """Arrays that grow."""

    sums: Floats
    x: NDArray[np.float32]
    label: Floats
    loss: NDArray[np.float32]
    answer: NDArray[np.float32]
    spread: NDArray[np.float32]
    relabelled: NDArray[np.int64]
    unchanged: NDArray[np.int64]
    visits: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, width: int) -> _Slots:
        n = 256
        return cls(np.zeros((n, SUMS)), np.zeros((n, width), np.float32), np.full(n, np.nan),
                   np.full((n, len(VISITS)), np.nan, np.float32), np.full((n, len(VISITS)), np.nan, np.float32),
                   np.full((n, len(VISITS)), np.nan, np.float32), np.zeros(n, np.int64), np.zeros(n, np.int64),
                   np.zeros(n, np.int64), np.zeros(n, np.int64))

    def grown(self, rows: int) -> _Slots:
        if rows <= len(self.order):
            return self
        more = min(MOST_ROWS, max(rows, 2 * len(self.order))) - len(self.order)
        return _Slots(*(np.concatenate([a, _empty(a, more)]) for a in vars(self).values()))


def _empty(like: NDArray[Any], rows: int) -> NDArray[Any]:
    return np.full((rows, *like.shape[1:]), np.nan if like.dtype.kind == "f" else 0, like.dtype)


@dataclass
class Book:
    """The rows of one role."""

    numbered: bool = True
    kinds: Counter[str] = field(default_factory=Counter)
    hashes: set[int] = field(default_factory=set)
    numbers: dict[int, set[int]] = field(default_factory=dict)
    """Numbers of rows by dataset."""
    batches: int = 0
    rows: int = 0
    """Of all batches, as long as hashes are kept."""
    twins: int = 0
    pairs: int = 0
    """Pairs of rows within batches that were compared, and those that are equal."""
    whole: bool = True
    ids: bool = False
    """The rows are token ids."""
    starts: list[float] = field(default_factory=list)
    """Mean losses of the first batches."""
    _of: dict[Hashable, int] = field(default_factory=dict)
    _slots: _Slots | None = None

    def take(self, values: Floats, hashes: Sequence[int], dataset: int | None, numbers: NDArray[np.int64] | None,
             answers: Answers | None, whole: bool) -> NDArray[np.int64]:
        """One batch: `values` float shape (rows, SUMS + width). Returns the slot of each row, -1 for those not kept."""
        self.batches += 1
        self.whole &= whole
        self._known(hashes, dataset, numbers)
        if numbers is None:
            self.numbered = False
        if answers is not None:
            self.kinds[answers.kind] += 1
            if len(self.starts) < STARTS:
                self.starts.append(float(np.mean(answers.loss)))
        width = values.shape[1] - SUMS
        if self._slots is None:
            self._slots = _Slots.of(width)
        if self._slots.x.shape[1] != width:  # another length: known again, not kept
            return np.full(len(values), -1)
        keys: Sequence[Hashable] = hashes if numbers is None else [(dataset, int(n)) for n in numbers]
        slots = np.array([self._slot(k) for k in keys], np.int64)
        self._slots = self._slots.grown(len(self._of))
        self._fill(slots, values, numbers, answers)
        return slots

    def _known(self, hashes: Sequence[int], dataset: int | None, numbers: NDArray[np.int64] | None) -> None:
        if len(self.hashes) < MOST_HASHES:
            n = len(hashes)
            self.rows += n
            self.pairs += n * (n - 1) // 2
            self.twins += sum(c * (c - 1) // 2 for c in Counter(hashes).values() if c > 1)
            self.hashes.update(hashes)
        if dataset is not None and numbers is not None:
            known = self.numbers.setdefault(dataset, set())
            if len(known) < MOST_HASHES:
                known.update(numbers.tolist())

    def _slot(self, key: Hashable) -> int:
        found = self._of.get(key)
        if found is None:
            if len(self._of) >= MOST_ROWS:
                return -1
            found = self._of[key] = len(self._of)
        return found

    def _fill(self, slots: NDArray[np.int64], values: Floats, numbers: NDArray[np.int64] | None,
              answers: Answers | None) -> None:
        kept, s = self._slots, slots[slots >= 0]
        if kept is None or not len(s):
            return
        which = slots >= 0
        new = which & (kept.visits[slots] == 0)
        kept.sums[slots[new]], kept.x[slots[new]] = values[new, :SUMS], values[new, SUMS:]
        kept.order[slots[new]] = slots[new] if numbers is None else numbers[new]
        np.add.at(kept.visits, s, 1)
        column = np.searchsorted(VISITS, kept.visits[s], side="right") - 1
        exact = np.isin(kept.visits[s], VISITS)
        kept.spread[s[exact], column[exact]] = values[which, 1][exact]
        if answers is None:
            return
        again = np.flatnonzero(which & ~new)
        again = again[(kept.x[slots[again]] == values[again, SUMS:].astype(np.float32)).all(1)]
        same, label = slots[again], answers.label[again]
        np.add.at(kept.unchanged, same, 1)
        np.add.at(kept.relabelled, same[(label != kept.label[same]) & np.isfinite(label)], 1)
        kept.label[s] = np.where(np.isfinite(kept.label[s]), kept.label[s], answers.label[which])
        kept.loss[s[exact], column[exact]] = answers.loss[which][exact]
        kept.answer[s[exact], column[exact]] = answers.answer[which][exact]

    def named(self, slots: Sequence[int]) -> tuple[list[int], list[float]]:
        """The numbers of kept rows (of the first visit, where the dataset has none) and their largest values."""
        k = self._slots
        return ([], []) if k is None else ([int(k.order[s]) for s in slots], [float(k.sums[s, 2]) for s in slots])

    def seen(self) -> RowsSeen | None:
        """What is kept, in order; None where nothing is."""
        k, n = self._slots, len(self._of)
        if k is None or not n:
            return None
        at = np.argsort(k.order[:n], kind="stable")
        kind = self.kinds.most_common(1)[0][0] if self.kinds else "other"
        return RowsSeen(k.order[at], self.numbered, k.sums[at], k.x[at].astype(np.float64), kind, k.label[at],
                        k.loss[at].astype(np.float64), k.answer[at].astype(np.float64), k.spread[at].astype(np.float64),
                        k.relabelled[at], k.unchanged[at], k.visits[at], self.whole, self.ids,
                        float(np.median(self.starts)) if self.starts else float("nan"))
