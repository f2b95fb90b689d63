"""Two runs, one with planted values: which rows of the batches changed, in their input and in their target."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from traindx_tools.live.batch_rows import BatchRows

SUMS = 3
"""The first values of a kept row are its mean, standard deviation and largest absolute value."""
CHANGED = 1e-3
"""Standard deviations of a column: by less it has not changed."""
TIMES = 10.0
"""And times as much as half of all rows changed: a statistic of the whole data moves with every value, and all rows
with it."""
FITS = 5
UNLIKE = 0.5
"""Share of changed rows above which the two runs did not draw the same batches."""
FEWEST = 4
"""Rows whose target changed that are needed to judge."""
NEARLY_ALL, SOME, NONE = 0.8, 0.25, 0.2
RARE, BASE = 1e-4, 0.4
"""Probability of as many coincidences by chance, and the share of other rows whose input changed that is too much."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Compared:
    """Rows of both runs in their order. `inputs`: bool (n, w), `targets`: bool (n,); True where they differ."""

    control: BatchRows
    inputs: Flags
    targets: Flags
    why: str = ""
    """Why nothing can be said of them, "" where they can be compared."""

    @property
    def rows(self) -> Flags:
        """Rows of which any value of the input changed."""
        return np.asarray(self.inputs.any(1))


@dataclass(frozen=True)
class Together:
    """How often a row's input changes where its target does. `columns`: of the input, those that did in most."""

    targets: int
    both: int
    base: float
    """Share of the other rows whose input changed."""
    columns: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """Share of the rows with another target whose input is another one, too."""
        return self.both / self.targets if self.targets else 0.0

    @property
    def chance(self) -> float:
        """The probability of so many or more, were the inputs that changed any rows."""
        p, n = min(1.0, max(self.base, 1.0 / 10_000)), self.targets
        return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(self.both, n + 1))

    @property
    def leaks(self) -> bool:
        """Whether inputs hold their own targets."""
        enough = self.share >= NEARLY_ALL and self.base <= BASE
        some = self.share >= SOME and self.both >= FEWEST - 1 and self.base <= BASE / TIMES
        return self.targets >= FEWEST and (enough or some) and self.chance <= RARE


def compared(control: BatchRows, planted: BatchRows, role: int) -> Compared:
    """The rows of one role of two runs, as many as both have."""
    a, b = control.of_role(role), planted.of_role(role)
    n = min(len(a), len(b))
    none = Compared(a, np.zeros((0, 0), np.bool_), np.zeros(0, np.bool_))
    if n == 0:
        return Compared(a, none.inputs, none.targets, "no rows were seen")
    if a.inputs.shape[1] != b.inputs.shape[1] or (a.place[:n] != b.place[:n]).any():
        return Compared(a, none.inputs, none.targets, "the batches are of other sizes")
    inputs = _differ(a.inputs[:n], b.inputs[:n])
    if a.per_row == inputs.shape[1] - SUMS:  # every value was kept: the sums tell nothing else
        inputs[:, :SUMS] = False
    targets = np.asarray(_differ(a.targets[:n], b.targets[:n]).any(1))
    if max(float(inputs.any(1).mean()), float(targets.mean())) > UNLIKE:
        return Compared(a, none.inputs, none.targets,
                        "most rows changed: other batches are drawn, or what the model is given depends on all rows")
    return Compared(_first(a, n), inputs, targets)


def together(seen: Compared) -> Together:
    """How the changes of targets and inputs go together."""
    with_target = seen.targets
    rows = seen.rows
    count, both = int(with_target.sum()), int((rows & with_target).sum())
    rest = int((~with_target).sum())
    base = int((rows & ~with_target).sum()) / rest if rest else 0.0
    changed = seen.inputs[with_target & rows]
    most = changed.mean(0) >= 0.5 if len(changed) else np.zeros(seen.inputs.shape[1], np.bool_)
    return Together(count, both, base, tuple(int(i) - SUMS for i in np.flatnonzero(most) if i >= SUMS))


def apart(seen: Compared) -> bool:
    """Whether input and target of one row of the file reach the model in different rows of a batch.

    Every column of single rows was changed, so that a row that arrives whole changes in both.
    """
    t = together(seen)
    inputs = int(seen.rows.sum())
    return (t.targets >= FEWEST and inputs >= FEWEST and t.share <= NONE and max(inputs, t.targets)
            <= 2 * min(inputs, t.targets))


def _differ(a: NDArray[np.float32], b: NDArray[np.float32]) -> Flags:
    """Which values changed otherwise than their column as a whole: that moves by an offset and a factor, where it is
    scaled by statistics of all rows."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    there = np.isfinite(x) & np.isfinite(y)
    out = np.isfinite(x) != np.isfinite(y)
    for i in range(x.shape[1]):
        one, other = x[there[:, i], i], y[there[:, i], i]
        if len(one) and (one != other).any():
            out[there[:, i], i] = _outside(one, other)
    return out


def _outside(one: NDArray[np.float64], other: NDArray[np.float64]) -> Flags:
    """Values that a line through most of the pairs does not explain."""
    spread = one.std() or 1.0
    kept = np.ones(len(one), np.bool_)
    away = np.abs(other - one)
    for _ in range(FITS):
        x, y = one[kept], other[kept]
        varies = x.std() > 0
        slope = float(((x - x.mean()) * (y - y.mean())).mean() / x.var()) if varies else 1.0
        away = np.abs(other - y.mean() - slope * (one - x.mean()))
        kept = away <= max(TIMES * float(np.median(away)), 1e-9 * spread)
    return np.asarray(away > CHANGED * spread + TIMES * float(np.median(away)))


def _first(rows: BatchRows, n: int) -> BatchRows:
    return BatchRows(rows.step[:n], rows.place[:n], rows.role[:n], rows.inputs[:n], rows.targets[:n], rows.per_row,
                     rows.names, rows.whole)
