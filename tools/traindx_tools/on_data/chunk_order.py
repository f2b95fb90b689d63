"""Series that were joined in another order than they were recorded in: where chunks break off, and what follows what.

A chunk ends where the next row is further away than any two neighbours are. Joined rightly, each chunk but the last
ends where another one begins. Episodes and recordings that each begin anew end nowhere near each other's beginnings,
and one jump that nothing closes leaves all of them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL

FEWEST = 60
"""Rows of a series."""
SHORTEST = 8
"""Rows of a chunk."""
MOST_CHUNKS = 40
SMOOTH = 0.9
"""Correlation of neighbours from which on a number is a series."""
JUMP = 1.5
"""Times the largest usual step, that a jump has at least."""
USUAL = 0.995
"""Share of the steps that are usual ones."""
PAIRS = 4_000
"""Pairs of rows that are drawn, to learn how often two fit by chance."""
DIMENSIONS = 8.0
"""Decades of chance that the closeness of two rows is taken for at most: fields that go along count once."""
GAP = 3.0
"""Typical steps of a counter between the end of a chunk and the beginning of the next one, at most."""
REGULAR = 0.97


@dataclass(frozen=True, eq=False)
class Reordered:
    """Chunks, and the order in which they belong. `starts`: their first rows, as places in the series."""

    starts: tuple[int, ...]
    order: tuple[int, ...]
    log_chance: float
    by: str
    """"values" or "counter"."""


def by_counter(counter: Array) -> Reordered | None:
    """Chunks between which a counter or a clock goes back, and which it puts in another order without a gap.

    Its numbers must be distinct and rise by a typical step within each chunk.
    """
    if len(counter) < FEWEST or not np.isfinite(counter).all():
        return None
    steps = np.diff(counter)
    step = float(np.median(steps))
    if not step > 0 or float(np.mean((steps > 0) & (steps <= GAP * step))) < REGULAR:
        return None
    cuts = np.flatnonzero((steps <= 0) | (steps > GAP * step)) + 1
    if not (steps <= 0).any() or len(cuts) >= MOST_CHUNKS or len(np.unique(counter)) < len(counter):
        return None
    starts = np.concatenate([[0], cuts])
    ends = np.concatenate([cuts, [len(counter)]]) - 1
    order = np.argsort(counter[starts], kind="stable")
    gaps = counter[starts[order]][1:] - counter[ends[order]][:-1]
    if (gaps <= 0).any() or float(np.mean(gaps <= GAP * step)) < 0.5 or len(starts) < 2:
        return None
    return _merged(starts, order, gaps <= GAP * step, -math.inf, "counter")


def _merged(starts: Array, order: Array, closed: Array, log_chance: float, by: str) -> Reordered | None:
    """None where the chunks stand in their order already."""
    if (np.diff(order) > 0).all() or not closed.any():
        return None
    return Reordered(tuple(starts.tolist()), tuple(order.tolist()), log_chance, by)


def smooth(columns: Iterable[Array]) -> Array:
    """float64 shape (rows, columns): the columns of a table that are series, in units of their own usual step."""
    kept, rows = [], 0
    for values in columns:
        column = np.asarray(values, np.float64)
        rows = len(column)
        if not np.isfinite(column).all() or len(column) < FEWEST:
            continue
        around = column - column.mean()
        size = float(around @ around)
        if size <= 0 or float(around[1:] @ around[:-1]) / size < SMOOTH:
            continue
        steps = np.abs(np.diff(column))
        usual = float(np.quantile(steps, USUAL))
        if usual > 0 and float(np.median(steps)) > 0:
            kept.append(column / usual)
    return np.stack(kept, axis=1) if kept else np.empty((rows, 0))


def by_values(series: Array, comparisons: float = 1.0) -> Reordered | None:
    """Chunks that fit to each other in another order. `series`: as `smooth` gives it, shape (rows, columns)."""
    if len(series) < FEWEST or not series.shape[1]:
        return None
    steps = _apart(series[:-1], series[1:])
    usual = float(np.quantile(steps, USUAL))
    inner = np.sort(steps)[: int(len(steps) * USUAL)]
    largest = max(usual, float(inner[-1]))
    cuts = np.flatnonzero(steps > JUMP * largest) + 1
    if not 1 <= len(cuts) < MOST_CHUNKS:
        return None
    starts = np.concatenate([[0], cuts])
    ends = np.concatenate([cuts, [len(series)]])
    if (ends - starts).min() < SHORTEST:
        return None
    return _chained(series, starts, ends, JUMP * largest, comparisons)


def _apart(one: Array, other: Array) -> Array:
    """The largest step of any column."""
    return np.asarray(np.abs(one - other).max(axis=-1))


def _chained(series: Array, starts: Array, ends: Array, usual: float, comparisons: float) -> Reordered | None:
    """The chain in which each chunk is followed by one that begins where it ends; None where a link is missing.

    Where a chunk goes on is said by its last rows: the value, and the way that it went.
    """
    count = len(starts)
    last, first = series[ends - 1], series[starts]
    onward = 2 * series[ends - 1] - series[ends - 2]
    before = 2 * series[starts] - series[starts + 1]
    straight = _straight(series)
    near = np.empty((count, count))
    for i in range(count):
        near[i] = _apart(last[i], first)
        if straight:
            near[i] = np.maximum(near[i], 0.5 * (_apart(onward[i], first) + _apart(last[i], before)))
    np.fill_diagonal(near, np.inf)
    fits = near <= usual
    # one chunk has no follower: a further one that fits behind it at no cost closes the ring
    costs = np.full((count + 1, count + 1), 0.0)
    costs[:count, :count] = np.where(fits, np.minimum(near / usual, 1.0), 1e3)
    costs[count, count] = 1e3
    follower = assigned(costs)
    order = [int(follower[count])]
    while len(order) <= count and int(follower[order[-1]]) != count:
        order.append(int(follower[order[-1]]))
    if len(order) != count or len(set(order)) != count:
        return None
    links = list(pairwise(order))
    if not all(fits[a, b] for a, b in links):
        return None
    furthest = max(float(near[a, b]) for a, b in links)
    chance = len(links) * _log_fit(series, furthest, straight) + math.lgamma(count + 1)
    chance += math.log(max(1.0, comparisons))
    if chance > math.log(LEVEL):
        return None
    return _merged(starts, np.array(order), np.ones(len(links), bool), chance, "values")


def _straight(series: Array) -> bool:
    """Whether steps go on as they were: then the way of a chunk's end tells where it goes."""
    steps = np.diff(series, axis=0)
    size = (steps**2).sum(axis=0)
    return bool(((steps[1:] * steps[:-1]).sum(axis=0) / np.maximum(size, 1e-12)).min() > SMOOTH)


def _log_fit(series: Array, usual: float, straight: bool) -> float:
    """Log of the chance that a row is as near behind another one, drawn from anywhere in the series."""
    rng = np.random.default_rng(0)
    one, other = rng.integers(1, len(series) - 1, (2, PAIRS))
    far = np.abs(one - other) > 2
    one, other = one[far], other[far]
    parts = np.abs(series[one] - series[other])
    if straight:
        onward = np.abs(2 * series[one] - series[one - 1] - series[other])
        before = np.abs(series[one] - 2 * series[other] + series[other + 1])
        parts = np.maximum(parts, 0.5 * (onward + before))
    both = float((parts.max(axis=1) <= usual).mean())
    if both > 0:
        return math.log(max(both, 1.0 / PAIRS))
    # beyond what pairs can show: columns that go along with each other count as the best of them alone
    single = np.log10(np.maximum((parts <= usual).mean(axis=0), 1.0 / PAIRS))
    independent = max(1.0, _rank(series))
    return math.log(10.0) * max(-DIMENSIONS, min(-math.log10(PAIRS), float(np.median(single)) * independent))


def _rank(series: Array) -> float:
    """How many columns count, by the share of the variance along each axis (participation ratio)."""
    values = np.linalg.eigvalsh(np.corrcoef(series, rowvar=False)) if series.shape[1] > 1 else np.ones(1)
    return float(values.sum() ** 2 / (values**2).sum())
