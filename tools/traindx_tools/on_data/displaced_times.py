"""Times of one part that are displaced or in another unit: of a shard among those around it, or of a stretch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array
from traindx_tools.on_data.stretches import Stretch

FEWEST = 20
SHARDS = 4
REGULAR = 0.97
"""Share of the steps that lead forward by no more than `WIDE` typical ones."""
WIDE = 20.0
UNITS = {1e3: "milliseconds where the others are seconds", 1e6: "microseconds where the others are seconds",
         1e9: "nanoseconds where the others are seconds"}
HOUR, DAY = 3600.0, 86400.0


@dataclass(frozen=True)
class Displaced:
    """Part of a file's times: shard `index`, a stretch of it or all, later by `seconds` or `factor` times as large."""

    index: int
    stretch: Stretch | None
    by: float
    factor: float = 1.0


def displaced_shard(times: Sequence[Array]) -> Displaced | None:
    """The one shard that does not lie where its neighbours leave room for it."""
    if len(times) < SHARDS or any(len(t) < FEWEST for t in times):
        return None
    other = _other_unit(times)
    if other is not None:
        return other
    steps = [_typical(t) for t in times]
    if any(s is None for s in steps):
        return None
    step = float(np.median([s for s in steps if s is not None]))
    gaps = np.array([b[0] - a[-1] - step for a, b in itertools.pairwise(times)])
    apart = np.abs(gaps) > WIDE * step
    odd = np.flatnonzero(apart)
    if len(odd) == 2 and odd[1] == odd[0] + 1 and abs(gaps[odd[0]] + gaps[odd[1]]) <= 3.0 * WIDE * step:
        return _unless_summer(Displaced(int(odd[1]), None, float(gaps[odd[0]])), step)
    return None


def displaced_stretch(index: int, times: Array) -> Displaced | None:
    """The one stretch from which the times come back by as much as they left."""
    other = _stretch_of_another_unit(index, times)
    step = _typical(times)
    if other is not None or step is None:
        return other
    steps = np.diff(times)
    jumps = np.flatnonzero((steps < -WIDE * step) | (steps > WIDE * step))
    if len(jumps) != 2 or jumps[1] - jumps[0] < FEWEST:
        return None
    start, end = int(jumps[0]) + 1, int(jumps[1]) + 1
    leaves, returns = float(steps[jumps[0]]) - step, float(steps[jumps[1]]) - step
    if abs(leaves + returns) > 3.0 * WIDE * step:
        return None
    return _unless_summer(Displaced(index, Stretch(start, end), leaves), step)


def _stretch_of_another_unit(index: int, times: Array) -> Displaced | None:
    """Rows that follow each other whose numbers are a thousand times those of all others."""
    usual = float(np.median(times))
    if not usual > 1e8:
        return None
    ratios = times / usual
    for factor in UNITS:
        there = np.flatnonzero(np.abs(ratios / factor - 1.0) < 0.2)
        others = np.delete(ratios, there)
        if FEWEST <= len(there) == there[-1] - there[0] + 1 and float(np.abs(others - 1.0).max(initial=0.0)) < 0.2:
            return Displaced(index, Stretch(int(there[0]), int(there[-1]) + 1), 0.0, factor)
    return None


def _unless_summer(found: Displaced, step: float) -> Displaced | None:
    """None of an hour, by which clocks are set twice a year."""
    return None if abs(abs(found.by) - HOUR) <= max(60.0, 2 * step) else found


def _typical(times: Array) -> float | None:
    """The median step of times that mostly rise, None where they are in no order."""
    steps = np.diff(times)
    if len(steps) < FEWEST:
        return None
    step = float(np.median(steps))
    if not step > 0 or float(((steps >= 0) & (steps <= WIDE * step)).mean()) < REGULAR:
        return None
    return step


def _other_unit(times: Sequence[Array]) -> Displaced | None:
    """The one shard whose numbers are a thousand times as large or small, and are times of the others then."""
    middles = np.array([float(np.median(t)) for t in times])
    if not (middles > 0).all():
        return None
    usual = float(np.median(middles))
    ratios = middles / usual
    for factor in UNITS:
        for exact in (factor, 1.0 / factor):
            odd = np.flatnonzero(np.abs(np.log(ratios / exact)) < 0.05)
            others = np.delete(ratios, odd)
            if len(odd) == 1 and float(np.abs(np.log(others)).max()) < 0.2 and usual > 1e8:
                return Displaced(int(odd[0]), None, 0.0, exact)
    return None


def told_by(found: Displaced) -> str:
    """What it is, and what undoes it."""
    if found.factor != 1.0:
        large = max(found.factor, 1.0 / found.factor)
        return (f"are {UNITS[large]}: divide them by {found.factor:g}" if found.factor > 1 else
                f"are {large:g} times smaller than those of the others, as seconds among other units are")
    late = "later" if found.by > 0 else "earlier"
    hours = abs(found.by) / HOUR
    quarter = abs(hours * 4 - round(hours * 4)) < 0.1
    zone = f": {hours:.2f} hours, as another time zone makes" if quarter and 0.2 < hours <= 26 else (
        f": {abs(found.by) / DAY:.1f} days")
    return f"are {late} by {abs(found.by):,.0f} s than the rows before and behind leave room for{zone}"


def finite(values: Array) -> bool:
    """Whether all of them are numbers."""
    return bool(len(values)) and math.isfinite(float(values.sum()))
