"""The shape of a series: its trustworthy points and robust numbers taken from them.

Pure functions on numpy arrays, shared by the curve rules. They never warn and never raise on hostile values: a `Track`
holds only finite values, bounded to `LARGEST`, at positions that do not go back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Location
from traindx_tools.on_logs.run import Floats, Ints, Series

LARGEST = 1e150
"""Values and positions are bounded to this size, so that sums and squares of them stay finite."""

LARGE, HUGE = 1e4, 1e7
"""Between them a value is written with all of its digits before the point."""

MANY = 4000
"""Longest series on which a running median is taken value by value; longer ones are first cut into blocks."""


@dataclass(frozen=True, eq=False)
class Track:
    """The finite values `y` of a series at positions `x` that never go back, both of shape (n,).

    `index[i]` is where value `i` stands in the series. `unit` says what `x` counts: "step", "epoch", or "record" where
    the log numbers nothing or its numbering goes back in a way that cannot be straightened. `wrapped` is true where a
    step counter that starts again every epoch was laid end to end.
    """

    series: Series
    index: Ints
    x: Floats
    y: Floats
    unit: str
    wrapped: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def at(self, start: int, end: int | None = None) -> Location:
        """The place of values `start` to `end` inclusive."""
        return self.series.at(int(self.index[start]), None if end is None else int(self.index[end]))

    def place(self, i: int) -> str:
        """ "step 400", "epoch 3" or "line 12"."""
        return place(self.series, int(self.index[i]))

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the record-to-record noise, robust to trends, steps and single spikes."""
        return noise(self.y)

    def part(self, start: int, end: int | None = None) -> Track:
        """The values with index `start` up to, not including, `end`."""
        cut = slice(start, end)
        return Track(self.series, self.index[cut], self.x[cut], self.y[cut], self.unit, self.wrapped)


def place(series: Series, i: int) -> str:
    """ "step 400", "epoch 3" or "line 12": where value `i` of the series stands."""
    return f"{series.unit} {series.position[i]:.10g}"


def number(value: float) -> str:
    """A value as a person writes it: at most four significant digits; a throughput of 12000 is not "1.2e+04".

    What was bounded to `LARGEST` is told as a bound: no value of the log is as it stands there.
    """
    if LARGEST <= abs(value) < np.inf:
        return f"{'beyond ' if value > 0 else 'below -'}{LARGEST:.4g}"
    return f"{value:.0f}" if LARGE <= abs(value) < HUGE else f"{value:.4g}"


def track(series: Series | None) -> Track | None:
    """The finite points of a series; None where it has none."""
    if series is None or not len(series) or not series.finite.any():
        return None
    index = np.flatnonzero(series.finite)
    straight, unit, wrapped = _straight_positions(series)
    return Track(series, index, straight[index], np.clip(series.values[index], -LARGEST, LARGEST), unit, wrapped)


def _straight_positions(series: Series) -> tuple[Floats, str, bool]:
    records = np.arange(len(series), dtype=np.float64)
    if series.unit == "line":
        return records, "record", False
    position = np.clip(series.position, -LARGEST, LARGEST)
    drops = np.flatnonzero(np.diff(position) < 0)
    if not len(drops):
        return np.asarray(position), series.unit, False
    if (laid := _end_to_end(position, drops)) is not None:
        return laid, series.unit, True
    return records, "record", False


def _end_to_end(position: Floats, drops: NDArray[np.intp]) -> Floats | None:
    """Positions of a counter that starts again at every epoch, added up; None where the restarts are no such thing."""
    ends, starts = position[drops], position[drops + 1]
    length = float(ends.max())
    interval = float(np.median(np.abs(np.diff(position))))
    same_length = bool((ends >= length - max(interval, 0.05 * length)).all())
    if length <= 0 or not same_length or (starts > 0.5 * length).any() or position[-1] > length + interval:
        return None
    piece = np.zeros(len(position))
    piece[drops + 1] = 1.0
    return np.asarray(position + np.cumsum(piece) * length)


def ratio(a: float, b: float) -> float:
    """a / b without a warning: inf for a division of something by zero, 1 for 0 / 0."""
    if b == 0:
        return 1.0 if a == 0 else float("inf") if a > 0 else float("-inf")
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def noise(y: Floats) -> float:
    """Robust standard deviation of independent noise around a smooth curve, from first and second differences.

    1.4826 is the ratio of a normal's standard deviation to its median absolute deviation; differencing once or twice
    multiplies the variance by 2 or 6. The smaller of both is taken: few points on a steep curve blow up the first.
    """
    if len(y) < 3:
        return 0.0
    first = 1.4826 * float(np.median(np.abs(np.diff(y)))) / 2**0.5
    second = 1.4826 * float(np.median(np.abs(np.diff(y, 2)))) / 6**0.5 if len(y) >= 5 else first
    return min(first, second)


def running_median(y: Floats, width: int) -> Floats:
    """Median over a centred window of `width` values (odd), mirrored at both ends. Shape (n,)."""
    half = min(width // 2, max(0, (len(y) - 1) // 2))
    if half == 0:
        return np.array(y)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(y, half, mode="reflect"), 2 * half + 1)
    return np.asarray(np.median(windows, axis=1))


def neighbourhood(y: Floats) -> Floats:
    """The usual level around each value: a running median, or medians of blocks joined by lines in a long series."""
    if len(y) <= MANY:
        return running_median(y, min(101, max(5, len(y) // 10)) | 1)
    medians, centres = _blocks(y)
    return np.asarray(np.interp(np.arange(len(y)), centres, medians))


def _blocks(y: Floats) -> tuple[Floats, Ints]:
    edges = np.linspace(0, len(y), 401).astype(np.int64)
    medians = np.array([np.median(y[a:b]) for a, b in itertools.pairwise(edges)])
    return medians, (edges[:-1] + edges[1:]) // 2


def smooth(t: Track) -> tuple[Floats, Ints]:
    """Local medians and the index in the track that each belongs to: robust to spikes, at most `MANY` values."""
    n = len(t)
    if n <= MANY:
        width = max(3, n // 20) if n >= 8 else 1
        return running_median(t.y, width | 1), np.arange(n)
    return _blocks(t.y)


def head_level(y: Floats) -> float:
    """Where a curve starts: the median of its first tenth, five values at most."""
    return float(np.median(y[: max(1, min(5, len(y) // 10))]))


def tail_count(n: int) -> int:
    """How many of the last values tell where a curve ends: a tenth of them, three at least."""
    return min(n, max(3, n // 10))


def tail_level(y: Floats) -> float:
    """Where a curve ends: the median of its last tenth, three values at least."""
    return float(np.median(y[-tail_count(len(y)):]))


def median_words(series: Series, first: int, last: int) -> str:
    """What a level is, where it is none of the values that the log holds: "median of steps 800–990".

    `first`, `last`: indices of the series, both counted in.
    """
    if last <= first:
        return f"at {place(series, first)}"
    if series.position[first] == series.position[last]:
        return f"median of {last - first + 1} records of {place(series, first)}"
    return f"median of {series.unit}s {series.position[first]:.10g}\u2013{series.position[last]:.10g}"


def start_words(t: Track) -> str:
    """Where a curve starts (`head_level`), and of which records that is the median."""
    return _level_words(t, 0, max(1, min(5, len(t) // 10)))


def end_words(t: Track) -> str:
    """Where a curve ends (`tail_level`), in the same words."""
    return _level_words(t, len(t) - tail_count(len(t)), len(t))


def _level_words(t: Track, first: int, after: int) -> str:
    part = t.y[first:after]
    level = number(float(np.median(part)))
    if len(part) < 2 or float(np.ptp(part)) == 0:
        return level
    return f"{level} ({median_words(t.series, int(t.index[first]), int(t.index[after - 1]))})"


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's rho, ties by order of appearance; 0 where there are fewer than three values or no spread."""
    if len(y) < 3 or np.ptp(y) == 0 or np.ptp(x) == 0:
        return 0.0
    rx, ry = np.argsort(np.argsort(x, kind="stable")), np.argsort(np.argsort(y, kind="stable"))
    return float(np.corrcoef(rx, ry)[0, 1])


def line_fit(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Slope, intercept and R^2 of the least-squares line. R^2 is 0 where x or y does not vary.

    Both are scaled first, so that neither tiny nor huge values lose the fit.
    """
    span_x, span_y = float(np.ptp(x)) if len(x) else 0.0, float(np.ptp(y)) if len(y) else 0.0
    if len(x) < 2 or span_x == 0 or span_y == 0:
        return 0.0, float(np.median(y)) if len(y) else 0.0, 0.0
    with np.errstate(all="ignore"):
        u, v = (x - x[0]) / span_x, (y - y[0]) / span_y
        du, dv = u - u.mean(), v - v.mean()
        top, bottom, total = float(du @ dv), float(du @ du), float(dv @ dv)
        if not (np.isfinite([top, bottom, total]).all() and bottom > 0 and total > 0):
            return 0.0, float(np.median(y)), 0.0
        slope = top / bottom
        at_start = float(v.mean() - slope * u.mean())
        scaled = float(np.float64(slope) * span_y / span_x)
        return scaled, float(y[0] + at_start * span_y - scaled * x[0]), float(top * top / (bottom * total))


def runs_of(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and last index of each stretch of consecutive True."""
    starts, ends = bounds_of(mask)
    yield from zip(starts.tolist(), ends.tolist(), strict=True)


def bounds_of(mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The first and the last index of all stretches of consecutive True: two arrays of one length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return edges[::2], edges[1::2] - 1


def printed_unit(y: Floats) -> float | None:
    """The last decimal place that a log prints, as a number (1e-4 for "0.0010"); None where it shows nine or more.

    A value below half of it was printed as zero: a zero in such a log is a small number, not necessarily nothing.
    """
    if not len(y):
        return None
    for decimals in range(10):
        scaled = y * 10.0**decimals
        if not (np.abs(scaled) < 1e12).all():
            return None  # further places only make it larger, beyond what a float64 holds at last
        if (np.abs(scaled - np.round(scaled)) < 1e-6).all():
            return float(10.0**-decimals)
    return None


def value_near(other: Series | None, series: Series, i: int) -> float | None:
    """The finite value of `other` at or last before value `i` of `series`: by line in one file, else by position."""
    if other is None or not len(other):
        return None
    if other.source == series.source and other.rank == series.rank:
        before = np.flatnonzero((other.line <= series.line[i]) & other.finite)
    elif other.unit == series.unit != "line":
        before = np.flatnonzero((other.position <= series.position[i]) & other.finite)
    else:
        return None
    return float(other.values[before[-1]]) if len(before) else None
