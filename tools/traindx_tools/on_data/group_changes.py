"""A group of rows (a station, a device, a laboratory) whose values change at one row while those of the others do not.

Each group is held against what all groups do at the same time, so that a season, a market or a campaign is no change;
where rows have no time in common, against its own rows, which must be in no order then. A break is told where two
models of the group, one for a stretch and one for the rest, explain far more than one does (Chow 1960), where it is
sharp at its ends, as no drift is, and where it is the only one among the groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut
from traindx_tools.on_data.odd_parts import APART, SHORTEST, rows_in_no_order
from traindx_tools.on_data.repairs import FACTORS, LEFT, WITHIN, Repair, repaired
from traindx_tools.on_data.significance import LEVEL, chi2_tail, distance
from traindx_tools.on_data.stretches import Stretch, heaviest

GRID = 48
"""Places at which a stretch may begin and end at first; its ends are then sought row by row."""
LONGEST = 0.9
SHARP = 0.65
"""Of what lies between both models, that the rows beside each end must show: a straight drift shows none of it."""
ROUNDS = 3
BESIDE = 20
MOST_BESIDE = 60
"""Rows beside an end."""
OTHERS = 3
"""One of so many groups may break: where more do, groups change by nature."""
SMALL = 1.15
"""A factor below which a level moved, and no unit was changed: none of the ratios in use is nearer to 1."""
MOST_UNITS = 4
FOLLOWS = 0.2
"""Share of a group's variance that the others tell, from which on it follows them."""
POSITIVE = 0.9
"""Share of the values that must be above zero for a factor; a model of a few rows may say less than zero of some."""
ALONG = 0.3
"""Distance of the distributions in the stretch and outside that one model of all rows leaves."""
NEAR = 0.3
"""Of the logarithm of the chance of the surest break: groups that break less surely by far follow their own weather."""
CLIP = 6.0
"""Ranges of the middle half beyond which a value counts as that far out: no tail leads the fit."""


@dataclass(frozen=True, eq=False)
class Change:
    """Group `part` of a cut, whose values are otherwise in a stretch of its own rows."""

    part: int
    rows: Array
    """int64: the rows of the stretch, as places in all rows."""
    mine: Array
    expected: Array
    """What the rest of the group and the other groups make of these rows."""
    shift: float
    """Of the middle of the stretch, in the spread that the rest of the group has around what is expected."""
    follows: bool
    """Whether the group follows what all groups do: then what is left of it is in an order too."""
    wander: float
    """The same of the `BESIDE` rows outside that are furthest from it: how far the group strays anyway."""
    repair: Repair | None
    ratio: float | None
    """The factor that makes the stretch like what is expected, where it is one; None where none does."""
    units: tuple[str, ...]
    """Ratios of two units that it may be, the nearest first."""
    log_chance: float


@dataclass(frozen=True, eq=False)
class _Break:
    stretch: Stretch
    outside: Array
    """What the model of the other rows says of each row."""
    log_chance: float


def changes(values: Array, member: Array, cut: Cut, key: Array | None, comparisons: float) -> Iterator[Change]:
    """The groups of a cut that break. `values`, `member`: shape (rows,), `key`: what orders rows, None for no time."""
    groups = len(cut.names)
    shared = _shared(values, member, groups, key) if key is not None else None
    if shared is None and not cut.by:
        return  # of files without a time in common each is judged by itself elsewhere
    positive = bool(np.nanmin(values[member >= 0], initial=np.inf) > 0)
    in_logs = _shared(np.log(values), member, groups, key) if positive and key is not None else None
    found = []
    for part in range(groups):
        own = np.flatnonzero((member == part) & np.isfinite(values))
        if len(own) < 4 * SHORTEST:
            continue
        if key is not None:
            own = own[np.argsort(key[own], kind="stable")]
        told = tuple(s[own] if s is not None else None for s in (shared, in_logs))
        change = _of_group(part, own, values[own], told, positive, comparisons * groups)
        if change is not None:
            found.append(change)
    surest = min((c.log_chance for c in found), default=0.0)
    found = [c for c in found if c.log_chance <= NEAR * surest]
    if len(found) <= max(1, groups // OTHERS):
        yield from found


def _shared(values: Array, member: Array, groups: int, key: Array) -> Array | None:
    """float64 shape (rows,): what all groups do at the time of a row, in units of each group's own spread.

    The median of the rows at one time, or of a few rows that are near: one group in three cannot move it. None where
    groups do not lie at the same times.
    """
    use = np.flatnonzero((member >= 0) & np.isfinite(values))
    if len(use) < 4 * SHORTEST:
        return None
    scaled = np.zeros(len(values))
    for part in range(groups):
        own = use[member[use] == part]
        if len(own):
            low, middle, high = np.quantile(values[own], (0.25, 0.5, 0.75))
            scaled[own] = np.clip((values[own] - middle) / max(high - low, 1e-12), -CLIP, CLIP)
    times, at = np.unique(key[use], return_inverse=True)
    at = at.reshape(-1)
    if len(times) > len(use) / groups * 2:  # each row has a time of its own
        order = np.empty(len(use), np.int64)
        order[np.argsort(key[use], kind="stable")] = np.arange(len(use))
        at = order // (2 * groups)
    seen = np.unique(at * groups + member[use])
    if float(np.mean(np.bincount(seen // groups, minlength=int(at.max()) + 1) >= max(2, 0.5 * groups))) < 0.5:
        return None
    order = np.lexsort((scaled[use], at))
    counts = np.bincount(at)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    ranked = scaled[use][order]
    there = counts > 0
    low, high = starts[there] + (counts[there] - 1) // 2, starts[there] + counts[there] // 2
    middle = np.zeros(len(counts))
    middle[there] = 0.5 * (ranked[low] + ranked[high])
    out = np.zeros(len(values))
    out[use] = middle[at]
    return out


def _of_group(part: int, own: Array, values: Array, shared: tuple[Array | None, ...], positive: bool,
              comparisons: float) -> Change | None:
    """The break of a group; of numbers above zero one that both they and their logarithms show.

    A factor that all groups have is an offset of logarithms alone, an offset that all have one of the numbers alone.
    """
    best: tuple[_Break, bool] | None = None
    for logs in (False, True) if positive else (False,):
        v = np.log(values) if logs else values
        low, middle, high = np.quantile(v, (0.25, 0.5, 0.75))
        others = shared[logs]
        found = _broken(np.clip(v, middle - CLIP * (high - low), middle + CLIP * (high - low)),
                        others if others is not None else np.zeros(len(v)), others is not None,
                        comparisons) if high > low else None
        if found is None or (best is not None and not _same(best[0].stretch, found.stretch)):
            return None
        if best is None or found.log_chance < best[0].log_chance:
            best = found, logs
    return _change(part, own, values, *best) if best is not None else None


def _same(one: Stretch, other: Stretch) -> bool:
    """Whether two stretches are the same but for their ends."""
    both = min(one.end, other.end) - max(one.start, other.start)
    return both > 0.5 * (max(one.end, other.end) - min(one.start, other.start))


def _change(part: int, own: Array, values: Array, found: _Break, logs: bool) -> Change | None:
    """The break in the unit of the values, where it is wide enough."""
    inside = found.stretch.inside(len(values))
    v = np.log(values) if logs else values
    left = v - found.outside
    around = np.sort(left[~inside])
    if distance(np.sort(left[inside]), around) < APART:
        return None
    draws = around[np.linspace(0, len(around) - 1, int(inside.sum())).astype(np.int64)]
    rng = np.random.default_rng(0)
    expected = found.outside[inside] + rng.permutation(draws)
    if logs:
        expected = np.exp(expected)
    spread = 0.7413 * float(np.subtract(*np.quantile(around, (0.75, 0.25))))
    shift = (float(np.median(left[inside])) - float(np.median(around))) / max(spread, 1e-12)
    blocks = (left[~inside] - float(np.median(around)))[: (~inside).sum() // BESIDE * BESIDE].reshape(-1, BESIDE)
    wander = float(np.abs(blocks.mean(axis=1)).max(initial=0.0)) / max(spread, 1e-12)
    follows = float(np.var(found.outside[~inside])) > FOLLOWS * float(np.var(v[~inside]))
    mine = values[inside]
    ratio, units = _factor(mine, expected)
    return Change(part, own[inside], mine, expected, shift, follows, wander, repaired(mine, expected), ratio, units,
                  found.log_chance)


def _factor(mine: Array, expected: Array) -> tuple[float | None, tuple[str, ...]]:
    """The factor between the middles of two samples where it alone makes them alike, and the units that have it."""
    if float(np.mean(mine > 0)) < POSITIVE or float(np.mean(expected > 0)) < POSITIVE:
        return None, ()
    logs = [np.sort(np.log(v[v > 0])) for v in (mine, expected)]
    away = float(np.median(logs[0])) - float(np.median(logs[1]))
    few = math.sqrt(1.0 / len(mine) + 1.0 / len(expected))
    if abs(away) < math.log(SMALL) or distance(logs[0] - away, logs[1]) > LEFT + 1.36 * few:
        return None, ()
    error = 2.0 * 1.25 * float(np.std(logs[1])) * few + WITHIN
    near = sorted((abs(abs(away) - math.log(f)), f"{f:g} ({told})") for f, told in FACTORS.items())
    return math.exp(away), tuple(told for off, told in near if off <= error)[:MOST_UNITS]


def _broken(v: Array, shared: Array, timed: bool, comparisons: float) -> _Break | None:
    """The stretch that two models explain best, where it is beyond chance and sharp."""
    grid = np.unique(np.linspace(0, len(v), GRID + 1).astype(np.int64))
    x, y = shared - shared.mean(), v - v.mean()
    sums = np.stack([np.ones(len(v)), x, x * x, y, x * y, y * y])
    sums = np.concatenate([np.zeros((6, 1)), np.cumsum(sums, axis=1)], axis=1)[:, grid]
    first, last = np.triu_indices(len(grid), 1)
    inside = sums[:, last] - sums[:, first]
    outside = sums[:, -1:] - inside
    fewest = max(SHORTEST, 0.5 * (1.0 - LONGEST) * len(v))
    fits = np.flatnonzero((inside[0] >= fewest) & (outside[0] >= (1.0 - LONGEST) * len(v)) & (first > 0))
    if not len(fits):
        return None
    left = _residual(inside[:, fits]) + _residual(outside[:, fits])
    best = int(np.argmin(left))
    whole = float(_residual(sums[:, -1:])[0])
    floor = 1e-12 * max(1e-300, float(sums[5, -1]))
    most = len(v) * math.log(max(whole, floor) / max(float(left[best]), floor))
    if math.log(max(chi2_tail(most, 2.0), 1e-300)) + math.log(len(fits) * comparisons) > math.log(LEVEL):
        return None  # were all rows independent: most groups end here
    at = fits[best]
    mask = Stretch(int(grid[first[at]]), int(grid[last[at]])).inside(len(v))
    for _ in range(ROUNDS):  # the ends first lie on the grid: a few rows of the other side bend the models
        said = [_fitted(x[m], v[m], x) for m in (mask, ~mask)]
        contrast = (v - said[1]) ** 2 - (v - said[0]) ** 2
        stretch = heaviest(contrast)
        if not fewest <= stretch.rows <= len(v) - fewest:
            return None
        stretch = _to_the_end(stretch, len(v))
        mask = stretch.inside(len(v))
    said = [_fitted(x[m], v[m], x) for m in (mask, ~mask)]
    contrast = (v - said[1]) ** 2 - (v - said[0]) ** 2
    along = v - _fitted(x, v, x)  # what follows the others is not told by a break, however unsure the two models are
    between = (said[1] - said[0]) ** 2
    if not _is_sharp(contrast, between, stretch) or distance(np.sort(along[mask]), np.sort(along[~mask])) < ALONG:
        return None
    rest = np.where(mask, v - said[0], v - said[1])
    if not timed and not rows_in_no_order(rest):
        return None
    effective = len(v) * _independent(rest)
    gained = effective * math.log(max(whole, floor) / max(float(left[best]), floor))
    chance = math.log(max(chi2_tail(gained, 2.0), 1e-300)) + math.log(len(fits) * comparisons)
    return _Break(stretch, said[1], chance) if chance < math.log(LEVEL) else None


def _residual(s: Array) -> Array:
    """Squares that a line leaves, from sums of 1, x, xx, y, xy, yy."""
    n = np.maximum(1.0, s[0])
    xx, xy, yy = s[2] - s[1] ** 2 / n, s[4] - s[1] * s[3] / n, s[5] - s[3] ** 2 / n
    return np.asarray(np.maximum(0.0, yy - np.where(xx > 1e-9, xy**2 / np.maximum(xx, 1e-9), 0.0)))


def _to_the_end(stretch: Stretch, rows: int) -> Stretch:
    """The stretch without a few rows at an end of the group, which chance adds; a beginning is told by what follows."""
    if stretch.start < SHORTEST and stretch.end < rows - SHORTEST:
        return Stretch(stretch.end, rows)
    return Stretch(stretch.start, rows if stretch.end > rows - SHORTEST else stretch.end)


def _fitted(x: Array, y: Array, everywhere: Array) -> Array:
    """What the line through some points says everywhere."""
    around = x - x.mean()
    xx = float(around @ around)
    slope = float(around @ y) / xx if xx > 1e-9 else 0.0
    return np.asarray(y.mean() + slope * (everywhere - x.mean()))


def _is_sharp(contrast: Array, between: Array, stretch: Stretch) -> bool:
    """Whether the rows beside each end belong to their side as clearly as both models lie apart there.

    `contrast`: by how much the model of the stretch is nearer, in squares; `between`: the square of what lies between
    both models. As many rows are asked as tell a half from a whole by three standard errors, from `BESIDE` on.
    """
    inside = stretch.inside(len(contrast))
    sides = np.where(inside, contrast, -contrast)
    for end in (e for e in (stretch.start, stretch.end) if e not in (0, len(contrast))):
        for rows in (range(end, len(contrast)), range(end - 1, -1, -1)):
            some = np.fromiter(rows, np.int64)
            some = some[inside[some] == inside[some[0]]]
            usual, scatter = float(between[some].mean()), float((sides - between)[some].std())
            count = int(np.clip((3.0 * scatter / max(1e-12, SHARP * usual)) ** 2, BESIDE, MOST_BESIDE))
            if float(sides[some[:count]].mean()) < SHARP * float(between[some[:count]].mean()):
                return False
    return True


def _independent(rest: Array) -> float:
    """Share of the rows that count as independent (Bartlett 1935), from the correlation of neighbours."""
    around = rest - rest.mean()
    size = float(around @ around)
    if size <= 0:
        return 1.0
    near = min(0.99, max(0.0, float(around[1:] @ around[:-1]) / size))
    return (1.0 - near) / (1.0 + near)


def most_changed(found: Sequence[Change]) -> Change:
    """Of the fields of one group the one whose change says most: with an operation that undoes it, then the surest."""
    return min(found, key=lambda c: (c.repair is None and c.ratio is None, c.log_chance))
