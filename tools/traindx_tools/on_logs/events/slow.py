"""Records that take far longer than those around them, or at which memory rises, also where these are no anomalies.

One host of sixteen that is slow makes six records of a hundred slow: the scatter of the series is wide then, and none
of them stands out of it. They are compared with the median of their stretch. A staircase of memory is no spike either.
"""

from __future__ import annotations

import numpy as np

from traindx_tools.on_logs.run import Floats, Ints, Series

TIMES = ("step_time", "epoch_time", "data_time", "time between records", "pauses between records")
SECONDS = " (s)"
"""Behind the name of one of these on an axis."""
RATES = ("throughput", "tokens_per_second", "samples_per_second")
"""Canonical names of seconds a record, and of what is done in a second."""
MEMORY = ("memory", "gpu_memory", "cpu_memory", "rss")
"""Canonical names of what is held."""
GROWTH, OF_GROWTH = 0.1, 0.8
"""By how much of itself memory grows over the run, and the share of that which comes at single records."""
STRETCH = 100
"""Records of which the median is what is usual."""
RATIO, SCATTERS = 1.5, 8.0
"""Times the usual, and times the scatter of the others beyond it, from which a record is slow."""
MOST = 0.2
"""Share of the records that may be slow: of more, slow is what is usual."""
LEAST = 0.01
"""Share of the time that they take beyond the usual from which they are asked about."""


def taken_by(series: Series) -> Floats | None:
    """Seconds (or their like) of each record, shape (n,); None of a series that measures no time."""
    if series.name.startswith(RATES):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(series.values > 0, 1.0 / series.values, np.nan)
    return series.values.astype(np.float64) if series.name.startswith(TIMES) else None


def slow_records(series: Series) -> Ints:
    """The slow records, ascending; none where they cost little, are most, or the series was thinned."""
    taken, none = taken_by(series), np.zeros(0, dtype=np.int64)
    if taken is None or series.thinned or len(taken) < 2 * STRETCH:
        return none
    known = np.isfinite(taken) & (taken >= 0) & (taken < 1e9)
    if known.mean() < 0.9:
        return none
    usual = _usual(np.where(known, taken, np.nan))
    beyond = np.where(known, taken - usual, 0.0)
    scatter = 1.4826 * float(np.median(np.abs(beyond[known])))
    slow = known & (taken > RATIO * usual) & (beyond > SCATTERS * scatter)
    slow[: STRETCH // 10] = False
    if slow.mean() > MOST or float(beyond[slow].sum()) < LEAST * float(taken[known].sum()):
        return none
    return np.flatnonzero(slow)


def rises(series: Series) -> Ints:
    """The records at which memory rises and does not fall back; none where it grows little, or at all records alike."""
    values, none = series.values.astype(np.float64), np.zeros(0, dtype=np.int64)
    if not series.name.startswith(MEMORY) or series.thinned or len(values) < STRETCH or not np.isfinite(values).all():
        return none
    quarter = len(values) // 4
    first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
    rise = np.diff(values, prepend=values[0])
    found = rise > SCATTERS * 1.4826 * float(np.median(np.abs(rise)))
    found[: STRETCH // 10] = False
    total = float(values[-1] - values[0])
    stays = OF_GROWTH * total <= float(rise[found].sum()) <= total / OF_GROWTH
    return np.flatnonzero(found) if last - first > GROWTH * first and found.mean() <= MOST and stays else none


def _usual(taken: Floats) -> Floats:
    """The median of the stretch of each record; of a rest it is that of the last whole one."""
    whole = len(taken) // STRETCH
    blocks = taken[: whole * STRETCH].reshape(whole, STRETCH)
    some = np.isfinite(blocks).any(axis=1)
    medians = np.full(whole, np.nanmedian(taken))
    medians[some] = np.nanmedian(blocks[some], axis=1)
    return np.repeat(medians, STRETCH, axis=0)[np.minimum(np.arange(len(taken)), whole * STRETCH - 1)]
