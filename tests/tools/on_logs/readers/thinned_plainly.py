"""Which records of a long log stay, in the plainest way: what `thinning.py` and `halving.py` are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers import halving, thinning

Array = NDArray[Any]


def _indices(records: Any, count: int) -> Array:
    return np.arange(count)[records] if isinstance(records, slice) else records


def _changes(values: Array, most: int) -> Array:
    differs = values[1:] != values[:-1]
    few = thinning.SELDOM * len(differs)
    if differs.sum() > few and np.isnan(values).any():
        differs &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    return _sides(differs, most) if differs.sum() <= few else np.zeros(0, np.int64)


def _sides(differs: Array, most: int) -> Array:
    at = np.flatnonzero(differs)
    if len(at) > most:
        half = most // 2
        at = np.concatenate([at[:half], at[half:][:: -(-(len(at) - half) // half)]])
    return np.concatenate([at, at + 1])


def _standing_out(values: Array, edges: int) -> tuple[set[int], set[int]]:
    """The places that are kept, and those that are far out, chunk by chunk."""
    size, count = thinning.CHUNK, len(values)
    if count < 2:
        return set(range(count)), set()
    finite = np.isfinite(values)
    found = {0, count - 1, *_changes(values, edges).tolist(), *_sides(finite[1:] != finite[:-1], edges).tolist()}
    if not finite.any():
        return found, set()
    filled, far = np.where(finite, values, np.median(values[finite])), set()
    for start in range(0, count, size):
        chunk = np.resize(filled[start:start + size], size)
        found |= {min(start + int(end), count - 1) for end in (chunk.argmin(), chunk.argmax())}
        some = np.clip(chunk[::thinning.SAMPLED], -1e150, 1e150)
        middle = np.median(some)
        scatter = 1.4826 * np.median(np.abs(some - middle))
        out = (chunk < middle - thinning.FAR * scatter) | (chunk > middle + thinning.FAR * scatter)
        if scatter > 0 and out.mean() <= thinning.SELDOM:
            far |= {start + int(at) for at in np.flatnonzero(out) if start + at < count}
    return found | far, far


def kept_exactly(count: int, series: Iterable[tuple[Any, Array]], step: Array, epoch: Array, time: Array, most: int,
                 edges: int = thinning.MOST_EDGES) -> Array:
    """As `thinning.kept_exactly`."""
    exact, near = np.zeros(count, bool), np.zeros(count, bool)
    for records, values in series:
        rows = _indices(records, count)
        alone, far = _standing_out(np.asarray(values), edges)
        exact[rows[sorted(alone)]] = True
        for at in rows[sorted(far)].tolist():
            near[max(0, at - thinning.AROUND): at + thinning.AROUND + 1] = True
    if count > 1:
        exact[_sides(step[1:] < step[:-1], edges)] = True
        exact[_changes(epoch, edges)] = True
        passed = np.diff(time)
        passed[~np.isfinite(passed)] = -1.0
        for start in range(0, len(passed), thinning.CHUNK) if (passed > 0).any() else ():
            at = start + int(passed[start:start + thinning.CHUNK].argmax())
            exact[at: at + 2] = True
    return exact | near if near.sum() <= most else exact


def graded(exact: Array, held: Iterable[Any], levels: Mapping[int, int], line: Array) -> Array:
    """As `halving.graded`: marks of all records, level by level."""
    grade = np.zeros(len(exact), np.int8)
    grade[exact] = halving.EXACT
    for sign, rows in halving.kinds_of(len(exact), enumerate(held)):
        for level in range(levels.get(sign, 0)):
            halving.halve(rows, grade, level, line)
    return grade
