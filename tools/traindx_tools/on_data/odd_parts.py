"""One part of the rows in which a number is distributed otherwise: a shard, or a stretch of rows within one.

A part is odd only among parts that agree. Of shards the others must differ from each other by hardly more than sampling
makes. Of a stretch the rows outside must be in no order, so that a stretch of its own is no season, source or class
that comes and goes, and no second stretch may be as odd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.significance import LEVEL, chi2_tail, distance, distance_bounds, distance_tail, share_tail
from traindx_tools.on_data.stretches import Stretch, heaviest

SHARDS = 4
"""Shards of which one can be odd."""
ROWS = 24
"""Rows of a shard."""
APART = 0.4
"""Distance of the distribution functions (Kolmogorov) of the odd part and the others."""
AGREE = 0.2
"""The same of any other shard and the rest: above it the shards differ by nature."""
TIMES = 3.0
LOST = 0.3
"""Share of the correlation of a value with what the other fields say, that may be left in a part."""
SHORTEST = 20
LONGEST = 0.5
"""Share of the rows of a file."""
INSIDE, OUTSIDE = 0.85, 0.35
"""Share of rows beyond a bound in a stretch at least, and outside at most."""
IN_ORDER = 0.15
"""Correlation of neighbours outside from which on the rows are in an order."""
WANDER = 2.0
"""Range of the sums of rows in no order, in their spread times the root of their number: larger in one of 20."""
BLOCKS = (20, 60, 200)
"""Rows of the blocks outside whose means must scatter no more than those of rows in no order."""
ORDERED = 1e-4
"""Chance of the scatter of block means below which the rows are in an order."""
SECOND = 0.3
"""Share of the weight of the best stretch that the next one may have."""
BOUNDS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
MOST = 4000
"""Rows of a shard whose distribution is compared."""


@dataclass(frozen=True)
class OddPart:
    """Shard `index`, all of it (`stretch` None) or a stretch of the rows that were looked at."""

    index: int
    stretch: Stretch | None
    apart: float
    log_chance: float
    """Over all parts of this statistic."""


def odd_shard(parts: Sequence[Array], comparisons: float) -> OddPart | None:
    """The one shard whose values are distributed otherwise, where all others agree."""
    if len(parts) < SHARDS or min(map(len, parts)) < ROWS:
        return None
    some = [np.sort(p[np.isfinite(p)][:: max(1, len(p) // MOST)]) for p in parts]
    if min(map(len, some)) < ROWS:
        return None
    if float(distance_bounds(some).max()) < APART:
        return None
    first = [distance(s, np.sort(np.concatenate([t for j, t in enumerate(some) if j != i])))
             for i, s in enumerate(some)]
    odd = int(np.argmax(first))
    if first[odd] < APART:
        return None
    rest = [s for j, s in enumerate(some) if j != odd]
    among = max(distance(s, np.sort(np.concatenate([t for j, t in enumerate(rest) if j != i])))
                for i, s in enumerate(rest))
    noise = max(1.6 * math.sqrt(1.0 / len(s) + 1.0 / max(1, sum(map(len, rest)) - len(s))) for s in rest)
    if among > max(AGREE, noise) or first[odd] < TIMES * min(among, AGREE) or first[odd] < among + APART / 2:
        return None
    p = distance_tail(first[odd] - among, len(some[odd]), sum(map(len, rest)))
    chance = math.log(max(p, 1e-300)) + math.log(len(parts) * comparisons)
    return OddPart(odd, None, first[odd], chance) if chance < math.log(LEVEL) else None


def differ_by_nature(parts: Sequence[Array], odd: int) -> bool:
    """Whether the shards other than one are distributed otherwise among each other."""
    rest = [np.sort(p[np.isfinite(p)][:: max(1, len(p) // MOST)]) for j, p in enumerate(parts) if j != odd]
    if min(map(len, rest)) < ROWS:
        return False
    noise = 1.6 * math.sqrt(1.0 / min(map(len, rest)) + 1.0 / sum(map(len, rest)))
    return any(distance(s, np.sort(np.concatenate([t for j, t in enumerate(rest) if j != i]))) > max(AGREE, noise)
               for i, s in enumerate(rest))


def lost(inside: Array, outside: Array) -> bool:
    """Whether what the other fields say of a value has nothing to do with it in a part, and the value is as elsewhere.

    Both float64 shape (rows, 2): said, value. A harder source has more noise, and is told by some of it still.
    """
    if distance(np.sort(inside[:, 1]), np.sort(outside[:, 1])) > APART / 2:
        return False
    within, usual = (float(np.corrcoef(p[:, 0], p[:, 1])[0, 1]) if p.std(axis=0).min() > 1e-9 else 0.0
                     for p in (inside, outside))
    return within <= LOST * usual


def odd_stretch(index: int, values: Array, comparisons: float) -> OddPart | None:
    """The one stretch of a file's rows in which the values are distributed otherwise."""
    finite = np.isfinite(values)
    if finite.mean() < 0.9 or len(values) < 4 * SHORTEST:
        return None
    values = np.where(finite, values, np.median(values[finite]))
    if not _may_have(values):
        return None
    best: tuple[float, Stretch, Array] | None = None
    for bound in np.unique(np.quantile(values, BOUNDS)):
        for hits in (values <= bound, values >= bound, values < bound, values > bound):
            found = _stretch(hits)
            if found is not None and (best is None or found[0] > best[0]):
                best = (*found, hits)
    if best is None:
        return None
    weight, stretch, hits = best
    stretch, hits = _sharpened(values, stretch, hits)
    inside = stretch.inside(len(values))
    if not rows_in_no_order(values[~inside]) or _second(hits, inside, weight):
        return None
    count, outside = int(hits[inside].sum()), float(hits[~inside].mean())
    p = share_tail(count, stretch.rows, min(0.99, max(outside, 2.0 / (~inside).sum())))
    chance = math.log(max(p, 1e-300)) + 2 * math.log(len(values)) + math.log(4 * len(BOUNDS) * comparisons)
    if chance > math.log(LEVEL):
        return None
    apart = distance(np.sort(values[inside]), np.sort(values[~inside]))
    return OddPart(index, stretch, apart, chance) if apart >= APART else None


def _may_have(values: Array) -> bool:
    """Whether sums of ranks, or of their distances to the middle, wander as far as a stretch makes them: cheap."""
    ranks = _ranks(values)
    for u in (ranks, np.abs(ranks)):
        sums = np.concatenate([[0.0], np.cumsum(u - u.mean())])
        if float(sums.max() - sums.min()) > WANDER * float(u.std()) * math.sqrt(len(u)):
            return True
    return False


def _ranks(values: Array) -> Array:
    """From -1 to 1; equal values have one."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * counts
    return np.asarray(2.0 * middle[at.reshape(-1)] / max(1, len(values)) - 1.0)


def _stretch(hits: Array) -> tuple[float, Stretch] | None:
    """The stretch in which hits are the rule, with its weight; None where it is too short, or hits are not rare."""
    rate = float(hits.mean())
    if not 0.0 < rate < 0.95:
        return None
    low, high = max(1e-3, min(OUTSIDE, rate)), 0.93
    weights = np.where(hits, math.log(high / low), math.log((1 - high) / (1 - low)))
    found = heaviest(weights)
    if found.rows < SHORTEST or found.rows > LONGEST * len(hits):
        return None
    inside = found.inside(len(hits))
    if float(hits[inside].mean()) < INSIDE or float(hits[~inside].mean()) > OUTSIDE:
        return None
    return float(weights[inside].sum()), found


def _sharpened(values: Array, stretch: Stretch, hits: Array) -> tuple[Stretch, Array]:
    """The stretch at the bound that tells its rows from the others best: others beside its edges are left out."""
    inside = stretch.inside(len(values))
    every = np.unique(values)
    below = [np.searchsorted(np.sort(part), every, "right") / len(part) for part in (values[inside], values[~inside])]
    apart = below[0] - below[1]
    bound = every[int(np.abs(apart).argmax())]
    sharper = values <= bound if apart[int(np.abs(apart).argmax())] > 0 else values > bound
    found = _stretch(sharper)
    if found is None:
        return stretch, hits
    return found[1], sharper


def _second(hits: Array, inside: Array, weight: float) -> bool:
    """Whether another stretch is nearly as odd: then the rows come in blocks."""
    rest = hits[~inside]
    low = max(1e-3, min(OUTSIDE, float(rest.mean())))
    weights = np.where(rest, math.log(0.93 / low), math.log(0.07 / (1 - low)))
    return float(weights[heaviest(weights).inside(len(rest))].sum()) > SECOND * weight


def rows_in_no_order(outside: Array) -> bool:
    """Whether the rows outside of the stretch are in no order: neighbours and blocks tell nothing of each other."""
    ranks = _ranks(outside)
    for u in (ranks, np.abs(ranks - np.median(ranks))):
        spread = float(u.std())
        if spread < 1e-9:
            continue
        z = (u - u.mean()) / spread
        if abs(float((z[1:] * z[:-1]).mean())) > max(IN_ORDER, 3.0 / math.sqrt(len(z))):
            return False
        for block in BLOCKS:
            count = len(z) // block
            if count >= 3:
                means = z[: count * block].reshape(count, block).mean(axis=1) * math.sqrt(block)
                if chi2_tail(float((means**2).sum()), count) < ORDERED:
                    return False
    return True
