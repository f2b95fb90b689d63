"""Every kind of anomaly that a series shows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import FALSE_ALARMS, Anomaly, Kind
from traindx_tools.on_logs.anomalies.breaks import breaks
from traindx_tools.on_logs.anomalies.copies import copied, flat
from traindx_tools.on_logs.anomalies.courses import drift, oscillation
from traindx_tools.on_logs.anomalies.halvings import halved
from traindx_tools.on_logs.anomalies.spikes import spikes
from traindx_tools.on_logs.anomalies.steps import steps
from traindx_tools.on_logs.anomalies.turns import turns
from traindx_tools.on_logs.curves.above_one import upper_bound
from traindx_tools.on_logs.curves.metric_ranges import range_of
from traindx_tools.on_logs.curves.shapes import LARGEST
from traindx_tools.on_logs.run import Floats, Ints, Series

FEWEST = 40
"""Records below which nothing is said of a series, but for values that cannot be."""


BESIDE = 24
"""Records between a break and a level shift that are the same."""


def anomalies_of(series: Series, kinds: Collection[Kind] = tuple(Kind)) -> tuple[Anomaly, ...]:
    """What stands out in a series, of these kinds, indices counted in the whole series.

    The name is asked for one thing: which values its definition excludes. The chance that a series without structure
    shows an anomaly of a kind is at most `anomaly.FALSE_ALARMS`, over its whole length.
    """
    index = np.flatnonzero(series.finite)
    y = np.clip(series.values[index], -LARGEST, LARGEST)
    found = [*_in_values(y, kinds)] if len(y) >= FEWEST else []
    if Kind.HALVED in kinds and (fall := halved(y)) is not None:
        found.append(fall)
    if Kind.STEP in kinds:
        found += _abrupt(y, [a for a in found if a.kind is Kind.STEP], cut=bool(len(y) and index[-1] < len(series) - 1))
    return (*(_placed(a, index) for a in found), *(_impossible(series) if Kind.IMPOSSIBLE in kinds else ()))


def _in_values(y: Floats, kinds: Collection[Kind]) -> Iterator[Anomaly]:
    with np.errstate(all="ignore"):
        for kind, every in ((Kind.SPIKE, spikes), (Kind.STEP, steps)):
            yield from every(y) if kind in kinds else ()
        for kind, one in ((Kind.DRIFT, drift), (Kind.OSCILLATION, oscillation), (Kind.FLAT, flat),
                          (Kind.COPIED, copied)):
            if kind in kinds and (found := one(y)) is not None:
                yield found


def _abrupt(y: Floats, told: Sequence[Anomaly], *, cut: bool) -> Iterator[Anomaly]:
    """The breaks and turns that the windows of `steps` have not told already.

    The bound on their chance was measured: of 50,000 series of noise, walks, decays and schedules two had a break.
    """
    known = [a.start for a in told]
    with np.errstate(all="ignore"):
        for found in (*breaks(y, cut=cut), *turns(y)):
            if all(abs(found.start - at) > BESIDE for at in known):
                known.append(found.start)
                yield Anomaly(Kind.STEP, found.start, found.end, found.size, FALSE_ALARMS, found.up)


def _placed(found: Anomaly, index: Ints) -> Anomaly:
    of = None if found.of is None else int(index[found.of])
    return Anomaly(found.kind, int(index[found.start]), int(index[found.end]), found.size, found.chance, found.up, of)


def _impossible(series: Series) -> Iterator[Anomaly]:
    """Stretches of values that are no numbers, or that the definition of the metric excludes."""
    bound = range_of(series)
    high = np.inf if bound is None else upper_bound(bound, series.values)
    low = -np.inf if bound is None else bound.low
    slack = 1e-3 * max(1.0, abs(low) if np.isfinite(low) else 0.0, high if np.isfinite(high) else 0.0)
    with np.errstate(invalid="ignore"):
        wrong = ~series.finite | (series.values < low - slack) | (series.values > high + slack)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wrong, [False]]).astype(np.int8)))
    for start, end in zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True):
        value = float(series.values[start])
        yield Anomaly(Kind.IMPOSSIBLE, start, end, value, 0.0, up=not value < low)
