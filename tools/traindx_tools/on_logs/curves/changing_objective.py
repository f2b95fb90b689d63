"""A loss whose terms are weighed anew while it runs: `total = rest + weight * term`, with all of them in the log.

A weight that grows (the KL term of a VAE, a penalty, a second task) lifts the total although nothing gets worse. What
can be compared over the run is the total at the last weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import Track, head_level, printed_unit, tail_level
from traindx_tools.on_logs.run import Floats, Run, Series

FEWEST = 5
"""Records."""
MOST_SERIES = 16
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
    total = t.y
    others = list(_beside(run, t))[:MOST_SERIES]
    for weight, w in others:
        grows = (w >= 0).all() and (np.diff(w) >= 0).all() and w[-1] > w[onset]  # a term is noisy, a schedule is not
        if len(total) < FEWEST or not grows:
            continue
        for term, y in others:
            rest = total - w * y
            for name, r in [("", None), *others]:
                if term == weight or name in (term, weight):
                    continue
                left = rest if r is None else rest - r
                if _is_nothing(left, total, (w, y), r):
                    at_last = (0.0 if r is None else r) + w[-1] * y
                    part = at_last[onset:]
                    return Weighed(weight, term, float(w[0]), float(w[-1]), head_level(part), tail_level(part))
    return None


def _is_nothing(left: Floats, total: Floats, product: tuple[Floats, Floats], rest: Floats | None) -> bool:
    """Whether what is left of the total is within what the log rounds."""
    w, y = product
    units = [printed_unit(v) for v in (total, w, y)] + [None if rest is None else printed_unit(rest)]
    of_total, of_w, of_y, of_rest = (0.5 * (u or 0.0) for u in units)
    bound = of_total + of_w * np.abs(y) + of_y * np.abs(w) + of_rest + ROUNDING * (np.abs(total) + np.abs(w * y))
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
