"""Ordered pairs (u, v) that a program was trained on or evaluated on, each once with its count, in bounded memory.

Beyond the bound a sample is kept, chosen by a hash of the unordered pair: (u, v) and (v, u) are both in it or neither,
so shares of reversed pairs in the sample are those of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.uint64]

MOST_PAIRS = 2**15
"""Pairs of one group that are kept: 1.5 MiB."""
MOST_WAITING = 2**15
"""Pairs that wait to be counted together."""
MOST_GROUPS = 48
"""Groups of a program (places of evaluation, calls of a training step): 120 MiB at the very most."""
STEADY, RARE, TOP = 0.5, 0.25, 0.95
"""Pairs that come half as often as those of the top 5 % of visits are the data; the rest was drawn anew (negatives). Of
more pairs than can be kept, those that come less than a quarter as often are forgotten."""
MOST_LABELS = 4
NO_LABEL = -1


def _mixed(x: NDArray[Any]) -> Codes:
    """The finaliser of splitmix64 (Steele et al. 2014)."""
    z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)


def codes(u: Ints, v: Ints) -> Codes:
    """One number for each ordered pair."""
    return _mixed(_mixed(u) * np.uint64(3) + _mixed(v))


def in_sample(u: Ints, v: Ints, rate: int) -> NDArray[np.bool_]:
    """Which pairs belong to the sample of one in `rate` (a power of two), whatever their order."""
    return np.asarray(_mixed(_mixed(u) + _mixed(v)) & np.uint64(rate - 1) == 0)


def contained(x: Codes, known: Codes) -> NDArray[np.bool_]:
    """Which of `x` are among `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(x), np.bool_)
    at = np.minimum(np.searchsorted(known, x), len(known) - 1)
    return np.asarray(known[at] == x)


@dataclass(frozen=True, eq=False)
class Kept:
    """Distinct pairs, ordered by code, shape (pairs,) each. `row`: where the pair stood when it was first seen."""

    u: Ints
    v: Ints
    code: Codes
    count: Ints
    label: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.code)

    def where(self, which: NDArray[np.bool_]) -> Kept:
        """A part of them."""
        return Kept(self.u[which], self.v[which], self.code[which], self.count[which], self.label[which],
                    self.row[which])

    @property
    def proper(self) -> Kept:
        """Without (u, u), which is its own reverse."""
        return self.where(self.u != self.v)


_EMPTY = np.zeros(0, np.int64)


@dataclass
class PairGroup:
    """The pairs of one place, or of one order within a step."""

    rate: int = 1
    calls: int = 0
    rows: int = 0
    """Rows of one call: the most."""
    step: int = 0
    """The last one."""
    _kept: Kept = field(default_factory=lambda: Kept(_EMPTY, _EMPTY, _EMPTY.astype(np.uint64), _EMPTY, _EMPTY, _EMPTY))
    _waiting: list[tuple[Ints, Ints, Ints, Ints]] = field(default_factory=list)
    _count: int = 0

    def take(self, u: Ints, v: Ints, step: int, label: Ints | None = None, row: Ints | None = None) -> None:
        """The pairs of one call, shape (rows,) each."""
        self.calls, self.step, self.rows = self.calls + 1, step, max(self.rows, len(u))
        row = np.arange(len(u)) if row is None else row
        label = np.full(len(u), NO_LABEL) if label is None else label
        if self.rate > 1:
            which = in_sample(u, v, self.rate)
            u, v, label, row = u[which], v[which], label[which], row[which]
        self._waiting.append((u, v, label, row))
        self._count += len(u)
        if self._count > MOST_WAITING:
            self._merge()

    def kept(self, rate: int = 1) -> Kept:
        """What was seen, at this rate or a rarer one."""
        self._merge()
        return self._kept if rate <= self.rate else self._kept.where(in_sample(self._kept.u, self._kept.v, rate))

    def _merge(self) -> None:
        if not self._waiting:
            return
        u, v, label, row = (np.concatenate(a) for a in zip(*self._waiting, strict=True))
        k, n = self._kept, np.ones(len(u), np.int64)
        both = Kept(np.concatenate([k.u, u]), np.concatenate([k.v, v]), np.concatenate([k.code, codes(u, v)]),
                    np.concatenate([k.count, n]), np.concatenate([k.label, label]), np.concatenate([k.row, row]))
        code, first, inverse = np.unique(both.code, return_index=True, return_inverse=True)
        count = np.bincount(inverse.reshape(-1), both.count, len(code)).astype(np.int64)
        self._kept = Kept(both.u[first], both.v[first], code, count, both.label[first], both.row[first])
        self._waiting, self._count = [], 0
        if len(self._kept) > MOST_PAIRS:  # negatives that are drawn anew go before a sample is taken
            top = _top(self._kept.count)
            self._kept = self._kept.where(self._kept.count >= RARE * top)
        while len(self._kept) > MOST_PAIRS:
            self.rate *= 2
            self._kept = self._kept.where(in_sample(self._kept.u, self._kept.v, self.rate))


def parts_of(kept: Kept) -> Iterator[Kept]:
    """All pairs; those that recur as the data do and negatives that are drawn anew do not; and those of each label."""
    yield kept
    steady = _steady(kept)
    if len(steady) < len(kept):
        yield steady
    labels = np.unique(steady.label)
    if 2 <= len(labels) <= MOST_LABELS:
        for label in labels:
            yield steady.where(steady.label == label)


def _steady(kept: Kept) -> Kept:
    if not len(kept):
        return kept
    return kept.where(kept.count >= STEADY * _top(kept.count))


def _top(count: Ints) -> float:
    counts = np.sort(count)
    visits = np.cumsum(counts)
    return float(counts[np.searchsorted(visits, TOP * visits[-1])])
