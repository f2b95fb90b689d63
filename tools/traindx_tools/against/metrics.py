"""Metrics of two runs side by side: at which step they part, by how much, and how much of that is noise.

Two runs with other seeds differ from the first step on and mean nothing by it. They part where the gap between their
running medians leaves the noise for good: four times the larger scatter around the running median, absolute or in
proportion to the value (a normal scatter is outside once in 16,000 records), and 2 % of the value, which is what a
changed order of additions can amount to after many steps. A value that is not finite in one run alone parts them at
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats, Run, Series

WINDOW = 5
"""Records in a running median."""
SCATTERS = 4.0
RELATIVE = 0.02
LASTING = 5
"""Records for which a gap has to last (or to the end): as many as share no record with the first median."""
WILDER = 3.0
"""Times the scatter of the working run that the other's may be and still be noise: a batch nine times smaller."""
EQUAL = 1e-6
"""Relative difference up to which two printed values count as the same."""
LEAST = 3
"""Records in common below which nothing is compared."""


@dataclass(frozen=True)
class MetricDifference:
    """One metric in both runs. `step` is in `unit` ("step", "epoch" or "line") and None where they never part."""

    name: str
    unit: str
    records: int
    """How many records were compared."""
    step: float | None
    here: float
    """The value of the broken run where they part; without a parting, its last one in common."""
    there: float
    """The value of the working run at the same place."""
    tolerance: float
    """What counts as noise there, in the metric's own unit."""
    same_until: float | None
    """The last step up to which both are equal digit for digit; None where they differ from the first record on."""
    first: float
    """The first step that was compared."""

    def statement(self) -> str:
        """One sentence with the numbers in it."""
        if self.step is None:
            return f"{self.name}: no difference beyond noise in {self.records} records"
        equal = f"equal digit for digit until {self.unit} {self.same_until:g}, then " \
            if self.same_until is not None else ""
        when = f"from the first record on ({self.unit} {self.step:g})" if self.step == self.first \
            else f"at {self.unit} {self.step:g}"
        gap = "" if not np.isfinite(self.here - self.there) else \
            f", a gap of {abs(self.here - self.there):.3g} where noise is {self.tolerance:.2g}"
        return f"{self.name}: {equal}parts {when}: {self.here:.4g} here, {self.there:.4g} there{gap}"


def metric_differences(here: Run, there: Run) -> tuple[list[MetricDifference], list[str], list[str]]:
    """Every metric of both runs, those that part first in front; and the names that only one of the runs logs."""
    mine, other = longest_by_name(here), longest_by_name(there)
    shared = [d for name, series in mine.items() if name in other and (d := _compared(name, series, other[name]))]
    shared.sort(key=lambda d: (d.step is None, d.unit, d.step or 0.0, d.name))
    return shared, [n for n in mine if n not in other], [n for n in other if n not in mine]


def longest_by_name(run: Run) -> dict[str, Series]:
    """The longest series of each name and group; of several ranks the first."""
    found: dict[str, Series] = {}
    for series in run.series:
        known = found.get(str(series))
        if len(series) and (known is None or len(series) > len(known)):
            found[str(series)] = series
    return found


def _compared(name: str, here: Series, there: Series) -> MetricDifference | None:
    aligned = _aligned(here, there)
    if aligned is None:
        return None
    unit, steps, a, b = aligned
    finite_a, finite_b = np.isfinite(a), np.isfinite(b)
    smooth_a, smooth_b = _smooth(a), _smooth(b)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        level = np.where(np.isfinite(smooth_b), np.abs(smooth_b), 0.0)
        absolute = _noise(a - smooth_a, b - smooth_b)
        relative = _noise(a / smooth_a - 1, b / smooth_b - 1)
        tolerance = SCATTERS * np.maximum(absolute, relative * level) + RELATIVE * level
        apart = (np.abs(smooth_a - smooth_b) > tolerance) | (finite_a != finite_b)
        equal = (np.abs(a - b) <= EQUAL * np.maximum(np.abs(a), np.abs(b))) | (a == b) | (~finite_a & ~finite_b)
    at = _lasting(apart, finite_a != finite_b)
    until = int(np.argmin(equal)) if not equal.all() else len(equal)
    if at is not None:
        at = max(at, until) if until < len(equal) else None  # a running median looks ahead; what is equal is not apart
    place = len(a) - 1 if at is None else at
    return MetricDifference(name, unit, len(a), None if at is None else float(steps[at]), float(a[place]),
                            float(b[place]), float(tolerance[place]), float(steps[until - 1]) if until else None,
                            float(steps[0]))


def _aligned(here: Series, there: Series) -> tuple[str, Floats, Floats, Floats] | None:
    """Both at the same steps: those in common, else the working run between its records; None where that is too few."""
    for unit, mine, other in _positions(here, there):
        common, i, j = np.intersect1d(mine, other, return_indices=True)
        if len(common) >= LEAST:
            return unit, common, here.values[i], there.values[j]
        order = np.argsort(other, kind="stable")
        inside = (mine >= other.min()) & (mine <= other.max())
        if inside.sum() >= LEAST:
            between = np.interp(mine[inside], other[order], there.values[order])
            return unit, mine[inside], here.values[inside], between
    return None


def _positions(here: Series, there: Series) -> Iterator[tuple[str, Floats, Floats]]:
    yield from ((unit, getattr(here, unit), getattr(there, unit)) for unit in ("step", "epoch")
                if np.isfinite(getattr(here, unit)).all() and np.isfinite(getattr(there, unit)).all())
    if here.unit == there.unit == "line":
        yield "line", np.arange(1.0, len(here) + 1), np.arange(1.0, len(there) + 1)


def _smooth(values: Floats) -> Floats:
    """The running median over finite values, as long as the values."""
    half = WINDOW // 2
    padded = np.pad(np.where(np.isfinite(values), values, np.nan), half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    found = np.full(len(values), np.nan)
    some = np.isfinite(windows).any(axis=1)
    found[some] = np.nanmedian(windows[some], axis=1)
    return found


def _scatter(rest: Floats) -> float:
    """A robust standard deviation: 1.4826 times the median absolute deviation, or 0 where there is nothing."""
    rest = rest[np.isfinite(rest)]
    return float(1.4826 * np.median(np.abs(rest - np.median(rest)))) if len(rest) else 0.0


def _noise(here: Floats, there: Floats) -> float:
    """The scatter that counts as noise, from the rests around the running medians of both runs.

    Of the broken run only its first quarter counts, and no more of that than `WILDER` times what the working run shows:
    a run that is ruined from the start scatters widely, and that is no noise but the difference that is looked for.
    """
    early = slice(max(LEAST, len(there) // 4))
    known = max(_scatter(there), _scatter(there[early]))
    return max(_scatter(there), min(_scatter(here[early]), WILDER * known))


def _lasting(apart: NDArray[np.bool_], at_once: NDArray[np.bool_]) -> int | None:
    for i in np.flatnonzero(apart):
        if at_once[i] or apart[i : i + LASTING].all():
            return int(i)
    return None


def shared_or_not(names: Iterable[str], most: int = 12) -> str:
    """Names in a row, cut where they are many."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
