"""Level shifts: the means of the records before and after differ by more than anywhere else in the series.

Means of values cut at four times their local scatter, at three widths. How far they differ by chance is taken from the
series itself: from the local extremes of that very difference, by the largest gap in their tail. So a random walk,
which changes its level all the time, has none, and independent noise has the narrow limit that it deserves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.anomalies.scatter import episodes, scatter_of
from traindx_tools.on_logs.anomalies.tails import outlying
from traindx_tools.on_logs.run import Floats

WIDTHS = (12, 40, 150)
"""Records on each side of a shift."""
CUT = 4.0
MOST = 20
"""Shifts of a series; more is another kind of course."""
LEAST = 1.5
"""Times the local scatter that a shift amounts to at least."""


def steps(y: Floats) -> Iterator[Anomaly]:
    """Every level shift, each once; each width has its share of the false alarms."""
    found = scatter_of(y)
    if found is None:
        return
    scale = float(np.median(found.scale))
    values = np.clip(y, *_bounds(found.course, found.scale))
    told: list[int] = []
    for width in WIDTHS:
        for at, size, chance in _shifts(values, width):
            if abs(size) >= LEAST * scale and all(abs(at - t) > 2 * width for t in told) and len(told) < MOST:
                told.append(at)
                yield Anomaly(Kind.STEP, at, at, abs(size) / scale, chance, size > 0)


def _bounds(course: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """What single records are cut to; a shift itself is not cut, as both levels near it are allowed."""
    around = np.stack([np.roll(course, 40), course, np.roll(course, -40)])
    around[0, :40], around[2, -40:] = course[:40], course[-40:]
    return around.min(axis=0) - CUT * scale, around.max(axis=0) + CUT * scale


def _shifts(values: Floats, width: int) -> Iterator[tuple[int, float, float]]:
    if len(values) < 30 * width:
        return
    total = np.concatenate([[0.0], np.cumsum(values - values[0])])
    middle = total[width:-width]
    apart = (total[2 * width:] - 2 * middle + total[: -2 * width]) / width
    size = np.abs(apart)
    starts, ends, peaks = episodes(size, float(np.quantile(size, 0.5)), width // 2)
    gap = outlying(peaks, 60 + int(4 * (len(values) / width) ** 0.5))
    if gap is None or gap.chance > FALSE_ALARMS / len(WIDTHS) or gap.count > MOST:
        return
    for start, end, peak in zip(starts, ends, peaks, strict=True):
        if peak >= gap.level:
            at = int(start) + int(size[int(start): int(end) + 1].argmax())
            yield at + width, float(apart[at]), gap.chance
