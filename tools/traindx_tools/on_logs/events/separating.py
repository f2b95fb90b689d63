"""The threshold of a column that separates anomalies from everything else best; events that are the series itself."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from traindx_tools.on_logs.events.candidates import Candidate
from traindx_tools.on_logs.events.chance import MOST_LAG
from traindx_tools.on_logs.run import Floats, Ints, Series

MOST_DIGITS = 12
"""Digits of a threshold that is told."""
OWN = 0.9
"""Share of the lines of an event that are records of the series, from which it may be a value of it."""
_NO_NUMBER = re.compile(r"\b(?:nan|inf|infinity)\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def shows_itself(series: Series, event: Candidate) -> bool:
    """Whether an event is nothing but the value of the series in its own records.

    A rare number of a column is a spike of the column, and stands at the same records by what it is. So does the same
    column under another name. An event that other values of the series come with is something else.
    """
    if event.series is not None:
        return event.series is series or np.array_equal(event.series.values, series.values, equal_nan=True)
    unwritten = _NO_NUMBER.search(event.text) is not None  # how a line reads whose value is none
    if not (event.kind == "value" or unwritten) or not len(event.lines) or not len(series):
        return False
    lines = series.line
    if (np.diff(lines) < 0).any():
        return False
    at = np.minimum(np.searchsorted(lines, event.lines), len(lines) - 1)
    own = lines[at] == event.lines
    values = np.unique(series.values[at[own]])
    if own.mean() < OWN or len(values) != 1:
        return False
    if not np.isfinite(values[0]):
        return unwritten
    return any(float(told) == float(values[0]) for told in _NUMBER.findall(event.text))


def separating(column: Candidate, times: Ints, at: Ints, near: int, far: int) -> Candidate:
    """The same column with the threshold that separates best, `near` to `far` records ahead of the anomalies.

    `times`: the record of each of its values. Thresholds are the extreme value ahead of each anomaly: of these the one
    with the largest distance (Youden) between the share of anomalies and the share of other rows beyond it. The column
    keeps how many were tried, for the comparisons.
    """
    series = column.series
    if series is None or far > MOST_LAG or len(times) != len(series):
        return column
    sign = 1.0 if column.high else -1.0
    known = series.finite
    values, records = sign * series.values[known], times[known]
    ahead = _extreme_ahead(values, records, at, near, far)
    tried = np.unique(ahead[np.isfinite(ahead)])
    if not len(tried):
        return column
    free = np.sort(values[~followed_by(records, at, near, far)])
    hits = (ahead[None, :] >= tried[:, None]).mean(axis=1)
    others = 1.0 - np.searchsorted(free, tried) / max(1, len(free))
    best = int(np.argmax(hits - others))
    below = values[values < tried[best]]
    bound = sign * round_between(float(below.max()) if len(below) else -math.inf, float(tried[best]))
    beyond = np.sort(series.line[known][values >= tried[best]])
    return replace(column, text=f"`{series.original}` {'>=' if column.high else '<='} {bound:,.{MOST_DIGITS}g}",
                   lines=beyond, tried=2 * len(at), number=column.origin)


def followed_by(records: Ints, at: Ints, near: int, far: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of the records an anomaly follows within `near` to `far`."""
    return np.asarray(np.searchsorted(at, records + far, side="right") > np.searchsorted(at, records + near))


def round_between(low: float, high: float) -> float:
    """The number with the fewest digits that is above `low` and at most `high`: the nearest to `high` of these."""
    if high == 0:
        return high
    size = math.floor(math.log10(abs(high)))
    for digits in range(MOST_DIGITS):
        places = digits - size
        down = math.floor(round(high * 10.0**places, 6)) / 10.0**places
        if low < down <= high:
            return down
    return high


def _extreme_ahead(values: Floats, records: Ints, at: Ints, near: int, far: int) -> Floats:
    """The largest value `near` to `far` records before each anomaly; minus infinity where there is none."""
    first, end = np.searchsorted(records, at - far), np.searchsorted(records, at - near, side="right")
    return np.array([values[a:b].max() if b > a else -np.inf for a, b in zip(first, end, strict=True)])
