"""A series as what is left of it around its own course, in units of its own scatter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import bounds_of, printed_unit, running_median
from traindx_tools.on_logs.run import Floats, Ints

BLOCK = 50
"""Records over which the course is taken: medians of blocks of so many, joined by lines."""
SCALES = 10
"""Blocks over which the scatter is taken."""
SHORT = 2000
"""Longest series whose course is a running median value by value."""


@dataclass(frozen=True, eq=False)
class Scatter:
    """`rest`: the values less their course over their scatter. `course`, `scale`: both, as long as the values."""

    rest: Floats
    course: Floats
    scale: Floats


def scatter_of(y: Floats) -> Scatter | None:
    """The scatter of finite values around their course; None where most of them are exactly on it."""
    course = _course(y)
    rest = y - course
    scale = _scale(np.abs(rest))
    floor = max((printed_unit(y[:2000]) or 0.0) / 2, 1e-12 * float(np.median(np.abs(y))))
    if not (scale > floor).any():
        return None
    scale = np.maximum(scale, max(floor, 1e-3 * float(np.median(scale))))
    return Scatter(rest / scale, course, scale)


def _course(y: Floats) -> Floats:
    if len(y) <= SHORT:
        return running_median(y, min(BLOCK, max(5, len(y) // 10)) | 1)
    medians, centres = _block_medians(y, BLOCK)
    return np.asarray(np.interp(np.arange(len(y)), centres, medians))


def _scale(distance: Floats) -> Floats:
    """1.4826 median distances of stretches of `SCALES` blocks, joined by lines."""
    medians, centres = _block_medians(distance, min(SCALES * BLOCK, max(len(distance) // 4, 1)))
    return np.asarray(1.4826 * np.interp(np.arange(len(distance)), centres, medians))


def _block_medians(y: Floats, size: int) -> tuple[Floats, Floats]:
    whole = len(y) // size * size
    medians = np.asarray(np.median(y[:whole].reshape(-1, size), axis=1), dtype=np.float64)
    return medians, np.arange(len(medians), dtype=np.float64) * size + (size - 1) / 2


def episodes(rest: Floats, above: float, apart: int) -> tuple[Ints, Ints, Floats]:
    """Where `rest` stands above a level, stretches less than `apart` records from each other as one.

    First and last index of each, and its highest value: independent of each other where single records are not.
    """
    starts, ends = bounds_of(rest > above)
    if not len(starts):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    new = np.concatenate([[True], starts[1:] - ends[:-1] >= apart])
    first = np.flatnonzero(new)
    last = np.concatenate([first[1:] - 1, [len(starts) - 1]])
    cuts = starts[first]
    peaks = np.maximum.reduceat(np.where(rest > above, rest, -np.inf), cuts)
    return cuts, ends[last], peaks
