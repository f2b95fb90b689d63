"""Two runs, one with planted values: which rows of the batches changed, in their input and in their target."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from traindx_tools.live.batch_rows import BatchRows
from traindx_tools.rows.book import SUMS

CHANGED = 1e-3
"""Standard deviations of a column: by less it has not changed."""
TIMES = 10.0
"""And times as much as half of all rows changed: a statistic of the whole data moves with every value, and all rows
with it."""
FITS = 5
LOOSE = 0.02
"""Standard deviations that half of the values lie off that line at most: else they are values of other rows."""
UNLIKE = 0.5
"""Share of changed rows above which the two runs did not draw the same batches."""
FEWEST = 4
"""Rows whose target changed that are needed to judge."""
NEARLY_ALL, NONE = 0.8, 0.2
"""Shares of the rows whose target changed, of which the input did as well."""
RARE, BASE = 1e-4, 0.4
"""Probability of as many coincidences by chance, and the share of other rows whose input changed that is too much."""
LARGE = 0.5
"""Of the change of most targets: where a target is taken relative to its own input (a difference to the present value,
a window's mean), a value that is changed in the input moves it too, and less, or the other way."""
SAME = 0.9999
"""Correlation from which a column is the target itself, in half precision too."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Compared:
    """Rows of both runs in their order. `inputs`: bool (n, w), `targets`: bool (n,); True where they differ. `moved`:
    float64 (n,), by how much the target of a row did, with its sign."""

    control: BatchRows
    inputs: Flags
    targets: Flags
    moved: NDArray[np.float64]
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
    least: float = 0.0
    """The smaller share of the targets that rose and of those that fell."""

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
        """Whether inputs hold their own targets: in the same places of nearly all, so that a target that is computed of
        whatever stands in the input (its largest value) is none."""
        enough = min(self.share, self.least) >= NEARLY_ALL and self.base <= BASE and bool(self.columns)
        return self.targets >= FEWEST and enough and self.chance <= RARE


def compared(control: BatchRows, planted: BatchRows, role: int) -> Compared:
    """The rows of one role of two runs, as many as both have."""
    a, b = control.of_role(role), planted.of_role(role)
    n = min(len(a), len(b))

    def untold(why: str) -> Compared:
        return Compared(a, np.zeros((0, 0), np.bool_), np.zeros(0, np.bool_), np.zeros(0), why)

    if n == 0:
        return untold("no rows were seen")
    if a.inputs.shape[1] != b.inputs.shape[1] or (a.place[:n] != b.place[:n]).any():
        return untold("the batches are of other sizes")
    inputs = _differ(a.inputs[:n], b.inputs[:n])
    if a.per_row == inputs.shape[1] - SUMS:  # every value was kept: the sums tell nothing else
        inputs[:, :SUMS] = False
    inputs[:, SUMS:][:, _copies(a.inputs[:n, SUMS:], a.targets[:n])] = False
    targets = np.asarray(_differ(a.targets[:n], b.targets[:n]).any(1))
    if max(float(inputs.any(1).mean()), float(targets.mean())) > UNLIKE:
        return untold("most rows changed: other batches are drawn, or what the model is given depends on all rows")
    moved = np.nan_to_num(b.targets[:n].astype(np.float64) - a.targets[:n])
    largest = np.abs(moved).argmax(1)
    return Compared(_first(a, n), inputs, targets, np.asarray(moved[np.arange(n), largest]))


def together(seen: Compared) -> Together:
    """How the changes of targets and inputs go together, of targets that changed by as much as most do."""
    size = np.abs(seen.moved)
    usual = float(np.quantile(size[seen.targets], 0.9)) if seen.targets.any() else 0.0
    with_target = seen.targets & (size >= LARGE * usual)
    rows = seen.rows
    count, both = int(with_target.sum()), int((rows & with_target).sum())
    rest = int((~with_target).sum())
    base = int((rows & ~with_target).sum()) / rest if rest else 0.0
    changed = seen.inputs[with_target & rows]
    rose, fell = with_target & (seen.moved > 0), with_target & (seen.moved < 0)
    shares = [float(rows[g].mean()) for g in (rose, fell) if g.any()]
    most = changed.mean(0) >= 0.5 if len(changed) else np.zeros(seen.inputs.shape[1], np.bool_)
    return Together(count, both, base, tuple(int(i) - SUMS for i in np.flatnonzero(most) if i >= SUMS),
                    min(shares, default=0.0))


def apart(seen: Compared) -> bool:
    """Whether input and target of one row of the file reach the model in different rows of a batch.

    Every column of single rows was changed, so that a row that arrives whole changes in both.
    """
    inputs, targets = int(seen.rows.sum()), int(seen.targets.sum())
    both = int((seen.rows & seen.targets).sum())
    alike = max(inputs, targets) <= 2 * min(inputs, targets)
    return min(inputs, targets) >= FEWEST and both <= NONE * targets and alike


def _copies(inputs: NDArray[np.float32], targets: NDArray[np.float32]) -> Flags:
    """Columns that are the target itself in some unit: a batch that goes into the model whole holds it, whether or not
    the model looks at it; that is not told by where values arrive."""
    x = np.nan_to_num(inputs.astype(np.float64))
    found = np.zeros(x.shape[1], np.bool_)
    away = x - x.mean(0)
    size = np.sqrt((away**2).sum(0))
    for i in range(targets.shape[1]):
        y = targets[:, i].astype(np.float64)
        if np.isfinite(y).all() and y.std() > 0:
            y = y - y.mean()
            found |= np.abs(away.T @ y) > SAME * size * np.sqrt((y**2).sum())
    return found


def _differ(a: NDArray[np.float32], b: NDArray[np.float32]) -> Flags:
    """Which values changed otherwise than their column as a whole: that moves by an offset and a factor, where it is
    scaled by statistics of all rows."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    there = np.isfinite(x) & np.isfinite(y)
    out: Flags = np.array(np.isfinite(x) != np.isfinite(y), np.bool_)
    for i in range(x.shape[1]):
        one, other = x[there[:, i], i], y[there[:, i], i]
        if len(one) and (one != other).any():
            out[there[:, i], i] = _outside(one, other)
    return out


def _outside(one: NDArray[np.float64], other: NDArray[np.float64]) -> Flags:
    """Values that a line through half of the pairs does not explain (least trimmed squares, Rousseeuw 1984)."""
    spread = float(one.std()) or 1.0
    away = np.abs(other - one)
    if float(np.median(away)) == 0.0:  # most are as they were
        return np.array(away > CHANGED * spread, np.bool_)
    away = np.abs(other - one - np.median(other - one))
    for _ in range(FITS):
        kept = away <= np.median(away)
        x, y = one[kept], other[kept]
        slope = float(((x - x.mean()) * (y - y.mean())).mean() / x.var()) if x.var() > 0 else 1.0
        away = np.abs(other - y.mean() - slope * (one - x.mean()))
    if float(np.median(away)) > LOOSE * spread:
        return np.ones(len(one), np.bool_)
    return np.array(away > CHANGED * spread + TIMES * float(np.median(away)), np.bool_)


def _first(rows: BatchRows, n: int) -> BatchRows:
    return BatchRows(rows.step[:n], rows.place[:n], rows.role[:n], rows.inputs[:n], rows.targets[:n], rows.per_row,
                     rows.names, rows.whole)
