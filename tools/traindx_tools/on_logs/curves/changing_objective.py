"""A loss whose terms are weighed anew or added while it runs, with all of them in the log.

A weight that grows (the KL term of a VAE, a penalty, a second task) lifts the total although nothing gets worse. What
can be compared over the run is the total at the last weight (`total = rest + weight * term`). So does a term that is 0
up to some record and counts from there on: what can be compared is the total without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np

from traindx_tools.on_logs.curves.shapes import Track, head_level, printed_unit, tail_level
from traindx_tools.on_logs.run import Floats, Run, Series

FEWEST = 5
"""Records."""
MOST_SERIES = 16
STEADY = 1.1
"""Times the level before: what the old terms may end at where the new ones make the rise."""
FEW = 64
"""Records on which a sum is tried first: most are none."""
AGREES = 0.95
"""Of the records in which the sum is the total, within what the log rounds."""
ROUNDING = 1e-6
"""Relative, for logs that print every place: sums over batches are taken in another order."""


@dataclass(frozen=True)
class Weighed:
    """A total as the sum of a rest and a term with a weight that changes."""

    weight: str
    term: str
    first: float
    last: float
    """The weight at the first and at the last record."""
    before: float
    after: float
    """The total at the last weight, at the beginning of the stretch that was asked about and at its end."""

    @property
    def falls(self) -> bool:
        """Whether the objective, with its last weights, got better."""
        return self.after < self.before

    @property
    def words(self) -> str:
        """Part of a sentence."""
        return (f"{self.weight}, the weight of {self.term}, goes from {self.first:.4g} to {self.last:.4g}: at the last "
                f"weight the loss goes from {self.before:.4g} to {self.after:.4g}")


def weighed(run: Run, t: Track, onset: int) -> Weighed | None:
    """How the loss is made of what else was logged, where a weight in it grows; None where nothing shows that.

    `onset`: where the stretch begins that is asked about.
    """
    if len(t) < FEWEST:
        return None
    total, nothing = _Part("", t.y), _Part("", np.zeros(len(t)))
    others = [_Part(name, values) for name, values in islice(_beside(run, t), MOST_SERIES)]
    for w in others:
        grows = (w.values >= 0).all() and (np.diff(w.values) >= 0).all() and w.values[-1] > w.values[onset]
        if not grows:  # a term is noisy, a schedule is not
            continue
        for y, rest in product(others, [nothing, *others]):
            if y is not w and rest is not y and rest is not w and _adds_up(total, w, y, rest):
                part = (rest.values + w.values[-1] * y.values)[onset:]
                return Weighed(w.name, y.name, float(w.values[0]), float(w.values[-1]), head_level(part),
                               tail_level(part))
    return None


@dataclass(frozen=True)
class Added:
    """A total to which terms are added on the way."""

    terms: tuple[str, ...]
    starts: tuple[int, ...]
    """The record from which each is not 0."""
    before: float
    after: float
    """The total without them before the first of them counts, and at the end."""

    @property
    def explains(self) -> bool:
        """Whether what was there before them does not rise."""
        return self.after <= STEADY * self.before

    @property
    def words(self) -> str:
        """Part of a sentence."""
        what = " and ".join(self.terms)
        return (f"{what} {'counts' if len(self.terms) == 1 else 'count'} from there on: without "
                f"{'it' if len(self.terms) == 1 else 'them'} the loss goes from {self.before:.4g} to {self.after:.4g}")


def added(run: Run, t: Track) -> Added | None:
    """The terms of the log that are exactly 0 up to some record and never again, where the total without them is no
    less than nothing; None where there are none."""
    terms = []
    for name, values in islice(_beside(run, t), MOST_SERIES):
        start = int(np.argmax(values != 0))
        if start >= 1 and len(t) - start >= FEWEST // 2 and (values[start:] > 0).all():
            terms.append((start, name, values))
    if not terms:
        return None
    terms.sort(key=lambda x: x[:2])
    rest = t.y - np.sum([values for _, _, values in terms], axis=0)
    first = terms[0][0]
    if (rest < -1e-3 * np.abs(t.y)).any():
        return None
    return Added(tuple(n for _, n, _ in terms), tuple(s for s, _, _ in terms), float(rest[first - 1]), tail_level(rest))


@dataclass(frozen=True)
class _Part:
    """A series at the records of the loss."""

    name: str
    values: Floats

    @cached_property
    def rounded(self) -> float:
        """By how much a printed value may be off."""
        return 0.5 * (printed_unit(self.values) or 0.0)


def _adds_up(total: _Part, w: _Part, y: _Part, rest: _Part) -> bool:
    """Whether the sum is the total within what the log rounds: in a few records, and then in all."""
    few = slice(None, None, max(1, len(total.values) // FEW))
    return all(_agrees(total, w, y, rest, at) for at in (few, slice(None)))


def _agrees(total: _Part, w: _Part, y: _Part, rest: _Part, at: slice) -> bool:
    whole, weight, term = total.values[at], w.values[at], y.values[at]
    bound = (total.rounded + w.rounded * np.abs(term) + y.rounded * np.abs(weight) + rest.rounded
             + ROUNDING * (np.abs(whole) + np.abs(weight * term)))
    left = whole - weight * term - rest.values[at]
    return float((np.abs(left) <= 1.05 * bound).mean()) >= AGREES


def _beside(run: Run, t: Track) -> Iterator[tuple[str, Floats]]:
    """Other series with a finite value at each record of the loss, by name."""
    at = t.series.position[t.index]
    for other in run.series:
        if other is t.series or other.rank != t.series.rank or other.unit != t.series.unit:
            continue
        if other.group != t.series.group or other.source != t.series.source:
            continue
        values = _values_at(other, at)
        if values is not None and np.ptp(values) > 0:
            yield other.original or other.name, values


def _values_at(other: Series, at: Floats) -> Floats | None:
    found = np.searchsorted(other.position, at)
    if (np.diff(other.position) < 0).any() or not len(other) or int(found.max(initial=0)) >= len(other):
        return None
    values = other.values[found]
    there = (other.position[found] == at).all() and np.isfinite(values).all()
    return np.asarray(values, dtype=np.float64) if there else None
