"""Which records of a very long log are kept: exactly what stands out, and an even share of the rest.

Kept exactly, whatever the length: where a series becomes NaN or infinite and where it is finite again, the least and
the greatest of each `CHUNK` values, those that are far out with what lies around them, each change of a series that
seldom changes (a learning rate, an epoch), where a step falls back, and the longest pauses. Of the other records of one
kind (those that hold the same series) one of two is dropped, again and again while there are too many: which one of a
pair is drawn by its line, so that no period of the log falls together with what is kept (`halving.py`). Kinds of few
records stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from traindx_tools.on_logs.readers.halving import Mask, Records
from traindx_tools.on_logs.run import Floats, Ints

CHUNK = 4096
"""Values of which the least and the greatest are kept: a few in a hundred of what is left of them."""
FAR = 8.0
"""Times the scatter of its chunk, by the median distance, from which the surroundings of a value are kept as well."""
SAMPLED = 13
"""Of so many values one tells the middle and the scatter of a chunk: of 315 the median distance is known to about seven
in a hundred, and a number that divides no usual period does not pick the same moment of each."""
AROUND = 32
"""Records on each side of such a value: rules ask whether it recovers, and what the log says before it."""
MOST_AROUND = 0.125
"""Share of all that is kept up to which surroundings are kept; where more is far out, the values alone are."""
SELDOM = 0.01
"""Share of values that differ from the one before, or are far out, up to which each is kept."""
HEAD = 4.0
"""Times as many values, from the first on, of which it is counted whether so many differ already."""
MOST_EDGES = 2_000
"""Changes that are kept of as many records as are dropped at once."""
LEAST_EDGES = 100
"""Changes that are kept of fewer."""


def _chunks(values: Floats) -> Floats:
    """Shape (chunks, CHUNK), the last one filled up with its own values again."""
    rest = len(values) % CHUNK
    if not rest:
        return values.reshape(-1, CHUNK)
    filled = np.resize(values[-rest:], CHUNK) if rest else values[:0]
    return np.concatenate([values[: len(values) - rest], filled]).reshape(-1, CHUNK)


def _places(of_chunk: Ints, count: int) -> Ints:
    return np.asarray(np.minimum(of_chunk + CHUNK * np.arange(len(of_chunk)), count - 1))


def _few(places: Ints, most: int) -> Ints:
    """The first half of what may be kept, and the others at even distances."""
    if len(places) <= most:
        return places
    half = most // 2
    return np.concatenate([places[:half], places[half:][:: -(-(len(places) - half) // half)]])


def _edges(differs: Mask, most: int) -> Ints:
    """Both sides of each place where a value differs from the one before."""
    at = _few(np.flatnonzero(differs), most)
    return np.concatenate([at, at + 1])


def seldom_changes(values: Floats, most: int) -> Ints:
    """Both sides of each change, where there are few; none where most values differ."""
    few, nothing = SELDOM * (len(values) - 1), np.zeros(0, np.int64)
    begin = values[: int(HEAD * few) + 2]
    if np.count_nonzero(_told_apart(begin, begin[1:] != begin[:-1])) > few:
        return nothing  # there are too many whatever follows
    differs = values[1:] != values[:-1]
    count = np.count_nonzero(differs)
    if count > few and np.isnan(values.min()):
        count = np.count_nonzero(_told_apart(values, differs))
    return _edges(differs, most) if count <= few else nothing


def _told_apart(values: Floats, differs: Mask) -> Mask:
    """The same without NaN after NaN, which is no change; in place."""
    if differs.any() and np.isnan(values.min()):
        differs &= (values[1:] == values[1:]) | (values[:-1] == values[:-1])
    return differs


def standing_out(values: Floats, edges: int) -> tuple[Ints, Ints]:
    """The values of one series that are kept exactly, and those that are far out."""
    if len(values) < 2:
        return np.arange(len(values)), np.zeros(0, np.int64)
    found = [np.array([0, len(values) - 1]), seldom_changes(values, edges)]
    chunks = _chunks(values)
    least, greatest = _ends(chunks)
    if not (np.isfinite(least.values).all() and np.isfinite(greatest.values).all()):
        finite = np.isfinite(values)
        found.append(_edges(finite[1:] != finite[:-1], edges))
        if not finite.any():
            return np.concatenate(found), np.zeros(0, np.int64)
        chunks = _chunks(np.where(finite, values, np.median(values[finite])))
        least, greatest = _ends(chunks)
    far = _far_out(chunks, least.values, greatest.values)
    far = far[far < len(values)]
    return np.concatenate([*found, *(_places(end.at, len(values)) for end in (least, greatest)), far]), far


class _End(NamedTuple):
    """The least or the greatest value of each chunk, NaN where it holds NaN, and where in it the first of them is."""

    at: Ints
    values: Floats


def _ends(chunks: Floats) -> tuple[_End, _End]:
    each = np.arange(len(chunks))
    least, greatest = chunks.argmin(axis=1), chunks.argmax(axis=1)
    return _End(least, chunks[each, least]), _End(greatest, chunks[each, greatest])


def _far_out(chunks: Floats, least: Floats, greatest: Floats) -> Ints:
    """The values far out, counted over all chunks. `least`, `greatest`: those of each chunk."""
    some = np.clip(chunks[:, ::SAMPLED], -1e150, 1e150)
    middle = _medians(some)
    scatter = 1.4826 * _medians(np.abs(some - middle[:, None]))
    low, high = middle - FAR * scatter, middle + FAR * scatter
    odd = np.flatnonzero((scatter > 0) & ((greatest > high) | (least < low)))
    if not len(odd):
        return odd
    out = (chunks[odd] > high[odd, None]) | (chunks[odd] < low[odd, None])
    out &= out.mean(axis=1, keepdims=True) <= SELDOM  # else it is no surprise there
    chunk, at = np.nonzero(out)
    return np.asarray(odd[chunk] * CHUNK + at)


def _medians(rows: Floats) -> Floats:
    """The median of each row of an even number of finite values; `numpy.median` takes four times as long."""
    half = rows.shape[1] // 2
    parted = np.partition(rows, half, axis=1)
    return np.asarray((parted[:, :half].max(axis=1) + parted[:, half]) / 2)


def falls_and_pauses(step: Floats, time: Floats, edges: int) -> Ints:
    """Both sides of each place where the step falls back, and of the longest pause of each chunk."""
    if len(step) < 2:
        return np.zeros(0, np.int64)
    found = [_edges(step[1:] < step[:-1], edges)]
    known = np.isfinite(time[:1] if time.strides == (0,) else time).any()
    passed = np.nan_to_num(np.diff(time), nan=-1.0, posinf=-1.0, neginf=-1.0) if known else time[:0]
    if (passed > 0).any():
        at = _places(_chunks(passed).argmax(axis=1), len(passed))
        found += [at, at + 1]
    return np.concatenate(found)


def kept_exactly(count: int, series: Iterable[tuple[Records, Floats]], step: Floats, epoch: Floats, time: Floats,
                 most: int, edges: int = MOST_EDGES) -> Mask:
    """Which of `count` records stay: those that stand out, and what surrounds the values far out, if these are at most
    `most` records. `series`: of each the records of its values, ascending, and the values. `edges`: changes of one
    series that are kept."""
    exact, all_far = np.zeros(count, bool), []
    for records, values in series:
        alone, far = standing_out(values, edges)
        if not isinstance(records, slice):
            alone, far = records[alone], records[far]
        exact[alone] = True
        all_far += [far] if len(far) else []
    exact[falls_and_pauses(step, time, edges)] = True
    if count > 1:
        exact[seldom_changes(epoch, edges)] = True
    if not all_far:
        return exact
    near = _around(np.concatenate(all_far), count)
    return exact | near if np.count_nonzero(near) <= most else exact


def _around(far: Ints, count: int) -> Mask:
    """Which of so many records surround those that are far out."""
    begun = np.zeros(count + 1, np.int64)
    np.add.at(begun, np.maximum(far - AROUND, 0), 1)
    np.add.at(begun, np.minimum(far + AROUND + 1, count), -1)
    return np.asarray(np.cumsum(begun)[:count] > 0)


def records_between(index: Records, start: int, end: int) -> Records:
    """Those of the records from one to another, counted from there; a slice for all of them."""
    if isinstance(index, slice):
        return slice(0, end - start)
    low, high = np.searchsorted(index, (start, end)).tolist()
    return index[low:high] - start


def values_between(index: Records, values: Floats, start: int, end: int) -> tuple[Records, Floats]:
    """The values of the records from one to another, with their records counted from there."""
    if isinstance(index, slice):
        return slice(0, end - start), values[start:end]
    low, high = np.searchsorted(index, (start, end)).tolist()
    return index[low:high] - start, values[low:high]


