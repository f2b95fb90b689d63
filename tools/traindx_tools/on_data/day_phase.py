"""At which hour the day of each group of rows (a station, a meter, a site) begins: its daily profile and all others'.

Temperature, load and traffic follow the sun and the clock. Each group's profile over the hours of the day is laid
against the mean of the others at every shift; the shift that fits best is found to a fraction of an hour, for blocks of
consecutive days by themselves. A clock that was set otherwise shifts the profile by whole hours; a place further east
does so by what it is, and the same in all years.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_data.column import Array

HOURS = 24
DAY = 86_400.0
BLOCKS = 8
DAYS = 4
"""Days of a block, at least."""
FEWEST = 3
"""Groups."""
COVERED = 18
"""Hours of the day that a block must have values at."""
CYCLE = 0.8
"""Correlation of the profiles of the typical group and the rest, from which on there is a daily cycle."""
NEAR = 0.3
"""Hours from a whole number that a shifted block may lie."""
AGREE = 0.35
"""Hours from no shift that the blocks of other groups lie, in nine of ten."""
SURE = 6.0
"""Spreads of the other groups' shifts that it must be."""


@dataclass(frozen=True)
class Phase:
    """Group `part`, whose days are `hours` late (negative: early) in blocks `first` to `last` of its days."""

    part: int
    hours: int
    found: float
    first: int
    last: int
    blocks: int
    spread: float
    measures: tuple[str, ...]


def phases(key: Array, member: Array, groups: int, measured: Sequence[tuple[str, Array]]) -> Phase | None:
    """The one group whose clock is off. `key`: seconds, float64 (rows,); `member`: int64 (rows,), -1 for none."""
    if groups < FEWEST or not _has_hours(key):
        return None
    edges = np.quantile(key, np.linspace(0, 1, BLOCKS + 1))
    edges = np.unique(np.concatenate([np.floor(edges[:1] / DAY) * DAY, np.round(edges[1:-1] / DAY) * DAY,
                                      edges[-1:] + 1.0]))
    if len(edges) < BLOCKS + 1 or float(np.diff(edges).min()) < DAYS * DAY:
        return None
    block = np.clip(np.searchsorted(edges, key, side="right") - 1, 0, BLOCKS - 1)
    tables, names = [], []
    for name, values in measured:
        table = _profiles(key, member, block, groups, values)
        if table is not None:
            tables.append(_shifts(table))
            names.append(name)
    if not tables:
        return None
    weights = np.stack([t[1] for t in tables])
    shifts = (np.stack([t[0] for t in tables]) * weights).sum(0) / np.maximum(weights.sum(0), 1e-9)
    return _odd(shifts, weights.sum(0) > 0, [t[0] for t in tables], names)


def _has_hours(key: Array) -> bool:
    """Whether rows lie at most hours of the day, over enough days."""
    hours = np.unique((key // 3600).astype(np.int64) % HOURS)
    return len(hours) == HOURS and float(key.max() - key.min()) >= BLOCKS * DAYS * DAY


def _profiles(key: Array, member: Array, block: Array, groups: int, values: Array) -> Array | None:
    """float64 shape (groups, blocks, 24): means by hour less those of the day; None where there is no daily cycle."""
    use = (member >= 0) & np.isfinite(values)
    if use.mean() < 0.5:
        return None
    m, b, v = member[use], block[use], values[use]
    hour = (key[use] // 3600).astype(np.int64) % HOURS
    low, high = np.quantile(v, (0.005, 0.995))
    v = np.clip(v, low, high)
    day = (key[use] // DAY).astype(np.int64)
    day -= day.min()
    of_day = m * (int(day.max()) + 1) + day
    counts = np.maximum(np.bincount(of_day), 1)
    v = v - (np.bincount(of_day, v) / counts)[of_day]
    cell = (m * BLOCKS + b) * HOURS + hour
    size = groups * BLOCKS * HOURS
    counts = np.bincount(cell, minlength=size)
    means = np.where(counts > 0, np.bincount(cell, v, size) / np.maximum(counts, 1), np.nan)
    table = means.reshape(groups, BLOCKS, HOURS)
    return table if _cycles(table) else None


def _over(how: Callable[..., Any], values: Array, **axis: Any) -> Array:
    """A mean or median of what is there; NaN where nothing is, which is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(how(values, **axis))


def _standard(profiles: Array) -> Array:
    """With mean 0 and norm 1 over the hours; missing hours are 0, too few of them NaN."""
    centred = profiles - _over(np.nanmean, profiles, axis=-1, keepdims=True)
    few = np.isfinite(profiles).sum(axis=-1, keepdims=True) < COVERED
    filled = np.nan_to_num(centred)
    out = filled / np.maximum(np.linalg.norm(filled, axis=-1, keepdims=True), 1e-12)
    return np.asarray(np.where(few, np.nan, out))


def _cycles(table: Array) -> bool:
    """Whether typical groups share a daily cycle, the same in most blocks."""
    each = _standard(_over(np.nanmean, table, axis=1))
    return len(each) >= FEWEST and float(np.nanmedian([_fit(each[g], _rest(each, g))[2] for g in range(len(each))])
                                         ) >= CYCLE


def _rest(each: Array, group: int) -> Array:
    return np.asarray(_standard(_over(np.nanmedian, np.delete(each, group, axis=0), axis=0)))


def _fit(profile: Array, rest: Array) -> tuple[float, float, float]:
    """Hours by which a profile is late, correlation there and the largest; a parabola finds the fraction."""
    if not (np.isfinite(profile).all() and np.isfinite(rest).all()):
        return np.nan, 0.0, 0.0
    scores = np.array([float(profile @ np.roll(rest, k)) for k in range(HOURS)])
    at = int(scores.argmax())
    before, here, behind = scores[at - 1], scores[at], scores[(at + 1) % HOURS]
    bend = before - 2 * here + behind
    late = at + (0.5 * (before - behind) / bend if bend < -1e-9 else 0.0)
    return (late + HOURS / 2) % HOURS - HOURS / 2, float(scores[0]), float(scores[at])


def _shifts(table: Array) -> tuple[Array, Array]:
    """float64 shape (groups, blocks): hours late against the other groups' same block, and how clear that is."""
    standard = _standard(table)
    late, clear = np.full(table.shape[:2], np.nan), np.zeros(table.shape[:2])
    for b in range(table.shape[1]):
        for g in range(table.shape[0]):
            late[g, b], _, best = _fit(standard[g, b], _rest(standard[:, b], g))
            clear[g, b] = best if best >= CYCLE and np.isfinite(late[g, b]) else 0.0
    return np.nan_to_num(late), clear


def _odd(shifts: Array, known: Array, each: Sequence[Array], names: Sequence[str]) -> Phase | None:
    best: Phase | None = None
    for g in range(len(shifts)):
        others = np.delete(shifts, g, axis=0)[np.delete(known, g, axis=0)]
        if len(others) < 2 * BLOCKS or known[g].sum() < BLOCKS // 2:
            continue
        if float((np.abs(others) <= AGREE).mean()) < 0.9:
            continue
        spread = max(0.06, 1.4826 * float(np.median(np.abs(others))))
        found = _run(shifts[g], known[g], spread)
        if found is None:
            continue
        hours, first, last = found
        told = tuple(n for n, t in zip(names, each, strict=True)
                     if abs(float(np.median(t[g, first: last + 1])) - hours) <= 2 * NEAR)
        if 2 * len(told) > len(names):
            seen = float(np.median(shifts[g, first: last + 1]))
            phase = Phase(g, hours, seen, first, last, BLOCKS, spread, told)
            if best is not None:
                return None  # more than one group: they differ by nature
            best = phase
    return best


def _run(shifts: Array, known: Array, spread: float) -> tuple[int, int, int] | None:
    """Whole hours, first and last of the consecutive blocks that are late by them while all others are on time."""
    blocks = np.flatnonzero(known)
    hours = np.round(shifts[blocks]).astype(int)
    off = np.flatnonzero(hours != 0)
    if len(off) < 2 or off[-1] - off[0] + 1 != len(off) or len(np.unique(hours[off])) != 1:
        return None
    whole = int(hours[off[0]])
    level = float(np.median(shifts[blocks[off]]))
    inner = off[1:-1] if len(off) > 3 else off  # at the ends a block is shifted for a part of its days
    if abs(level - whole) > NEAR or (np.abs(shifts[blocks[inner]] - whole) > 2 * NEAR).any() or (
            abs(level) < SURE * spread):
        return None
    return whole, int(blocks[off[0]]), int(blocks[off[-1]])


def hour_bounds(key: Array, first: int, last: int) -> tuple[float, float]:
    """The times between which those blocks lie."""
    edges = np.quantile(key, np.linspace(0, 1, BLOCKS + 1))
    return float(edges[first]), float(edges[last + 1])


def seconds_of(key: Array) -> Iterator[Array]:
    """The times in seconds, where they are in a unit that tells the hour: seconds, milli- or microseconds since 1970.
    """
    middle = float(np.median(np.abs(key)))
    for factor in (1.0, 1e-3, 1e-6, 1e-9):
        if 3e8 <= middle * factor <= 6e9:  # 1980 to 2160, also counted from 1900
            yield key * factor
            return
