"""Which records of a very long log are kept: exactly what stands out, and an even share of the rest.

Kept exactly, whatever the length: where a series becomes NaN or infinite and where it is finite again, the least and
the greatest of each `CHUNK` values, those that are far out with what lies around them, each change of a series that
seldom changes (a learning rate, an epoch), where a step falls back, and the longest pauses. Of the other records of one
kind (those that hold the same series) one of two is dropped, again and again while there are too many: which one of a
pair is drawn by its line, so that no period of the log falls together with what is kept. Kinds of few records stay
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats, Ints

EXACT = 127
"""The grade of a record that is never dropped; of others it is how often their kind was halved."""
GONE = -1
"""The grade of a record that is to be dropped."""
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
MOST_EDGES = 2_000
"""Changes that are kept of as many records as are dropped at once."""
LEAST_EDGES = 100
"""Changes that are kept of fewer."""
FEW = 1024
"""Records of a kind in a piece below which those of all pieces are halved together: one of an odd number stays."""
LEAST = 64
"""Records of a kind that are not thinned further."""

_TURNS = 3
"""Kinds that are told apart by comparing; more are sorted."""
Mask = NDArray[np.bool_]
Records = Ints | slice
"""Records of a series; a slice for all that there are."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(eq=False)
class Part:
    """Records of one kind that are halved together. `rows`: which of `grade` and `line` they are, ascending; `start`:
    the record of the first of these."""

    rows: Records
    grade: NDArray[np.int8]
    line: Ints
    start: int = 0

    def count(self) -> int:
        """Records that are not dropped."""
        return int(np.count_nonzero(self.grade[self.rows] != GONE))

    def places(self) -> Ints:
        """Which records of all they are."""
        rows = np.arange(len(self.grade)) if isinstance(self.rows, slice) else self.rows
        return rows + self.start

    def free(self) -> int:
        """Those of them that may be dropped."""
        grade = self.grade[self.rows]
        return int(np.count_nonzero((grade != EXACT) & (grade != GONE)))


@dataclass(eq=False)
class Kind:
    """The records that hold the same series. `width`: values of each; `level`: how often they were halved."""

    width: int
    level: int
    parts: list[Part]


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
    differs = values[1:] != values[:-1]
    few, count = SELDOM * len(differs), np.count_nonzero(differs)
    if count > few and np.isnan(values.min()):
        differs &= (values[1:] == values[1:]) | (values[:-1] == values[:-1])  # NaN after NaN is none
        count = np.count_nonzero(differs)
    return _edges(differs, most) if count <= few else np.zeros(0, np.int64)


def standing_out(values: Floats, edges: int) -> tuple[Ints, Ints]:
    """The values of one series that are kept exactly, and those that are far out."""
    if len(values) < 2:
        return np.arange(len(values)), np.zeros(0, np.int64)
    finite, filled = np.isfinite(values), values
    found = [np.array([0, len(values) - 1]), seldom_changes(values, edges)]
    if not finite.all():
        found.append(_edges(finite[1:] != finite[:-1], edges))
        if not finite.any():
            return np.concatenate(found), np.zeros(0, np.int64)
        filled = np.where(finite, values, np.median(values[finite]))
    chunks = _chunks(filled)
    least, greatest = chunks.argmin(axis=1), chunks.argmax(axis=1)
    far = _far_out(chunks, least, greatest)
    far = far[far < len(values)]
    return np.concatenate([*found, *(_places(at, len(values)) for at in (least, greatest)), far]), far


def _far_out(chunks: Floats, least: Ints, greatest: Ints) -> Ints:
    """The values far out, counted over all chunks. `least`, `greatest`: where those of each chunk stand in it."""
    some = np.clip(chunks[:, ::SAMPLED], -1e150, 1e150)
    middle = _medians(some)
    scatter = 1.4826 * _medians(np.abs(some - middle[:, None]))
    low, high = middle - FAR * scatter, middle + FAR * scatter
    each = np.arange(len(chunks))
    odd = np.flatnonzero((scatter > 0) & ((chunks[each, greatest] > high) | (chunks[each, least] < low)))
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
    passed = np.nan_to_num(np.diff(time), nan=-1.0, posinf=-1.0, neginf=-1.0) if np.isfinite(time).any() else time[:0]
    if (passed > 0).any():
        at = _places(_chunks(passed).argmax(axis=1), len(passed))
        found += [at, at + 1]
    return np.concatenate(found)


def kept_exactly(count: int, series: Iterable[tuple[Records, Floats]], step: Floats, epoch: Floats, time: Floats,
                 most: int, edges: int = MOST_EDGES) -> Mask:
    """Which of `count` records stay: those that stand out, and what surrounds the values far out, if these are at most
    `most` records. `series`: of each the records of its values, ascending, and the values. `edges`: changes of one
    series that are kept."""
    exact, around, outside = np.zeros(count, bool), np.zeros(count + 1, np.int64), False
    for records, values in series:
        alone, far = standing_out(values, edges)
        if not isinstance(records, slice):
            alone, far = records[alone], records[far]
        exact[alone] = True
        outside = outside or len(far) > 0
        np.add.at(around, np.maximum(far - AROUND, 0), 1)
        np.add.at(around, np.minimum(far + AROUND + 1, count), -1)
    exact[falls_and_pauses(step, time, edges)] = True
    if count > 1:
        exact[seldom_changes(epoch, edges)] = True
    if not outside:
        return exact
    near = np.cumsum(around)[:count] > 0
    return exact | near if np.count_nonzero(near) <= most else exact


def kinds_of(count: int, series: Iterable[tuple[int, Records]]) -> Iterator[tuple[int, Records]]:
    """The records that hold the same series, each kind by a number of its own; a slice where these are all.

    `series`: a number and its records."""
    of_all, others = np.uint64(0), []
    for number, records in series:
        if isinstance(records, slice):
            of_all ^= _sign_of(number)
        else:
            others.append((number, records))
    sign = np.full(count if others else 0, of_all)
    for number, records in others:
        sign[records] ^= _sign_of(number)
    if count and (sign == sign[:1]).all():
        yield int(sign[0] if others else of_all), slice(0, count)
        return
    rows = np.zeros(0, np.int64)
    for turn in range(_TURNS):
        if not len(sign):
            return
        same = sign == sign[0]
        alike, other = np.flatnonzero(same), np.flatnonzero(~same)
        yield int(sign[0]), rows[alike] if turn else alike
        sign, rows = sign[other], rows[other] if turn else other
    order = np.argsort(sign, kind="stable")
    edges = np.flatnonzero(np.diff(sign[order])) + 1
    yield from ((int(sign[part[0]]), rows[part]) for part in np.split(order, edges) if len(part))


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


@lru_cache(maxsize=8192)
def _sign_of(number: int) -> Any:
    """A number of 64 bits, drawn by another."""
    drawn = blake2b(str(number).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(drawn, "little"))


def halve(rows: Records, grade: NDArray[np.int8], level: int, line: Ints) -> int:
    """Marks one of each two that follow each other among the rows of a level as gone; the others rise to the next.

    How many are gone. `rows`: a slice for all that are graded."""
    here = grade == level
    at = np.flatnonzero(here) if isinstance(rows, slice) else rows[here[rows]]
    first, second = at[0 : len(at) // 2 * 2 : 2], at[1::2]
    drawn = line.take(first).view(np.uint64)
    drawn *= _SPREAD
    drawn >>= np.uint64(40 + level % 16)
    drawn &= np.uint64(1)
    if isinstance(rows, slice):
        grade += here
    else:
        grade[at] = level + 1
    grade[np.where(drawn == 1, first, second)] = GONE
    return len(second)


def thin(kinds: list[Kind], room: int) -> None:
    """Marks records of the kinds as gone until the values of the others fit into `room`, or nothing more may go."""
    total = sum(k.width * sum(part.count() for part in k.parts) for k in kinds)
    free = {id(k): sum(part.free() for part in k.parts) for k in kinds}
    while total > room and kinds:
        most = max(kinds, key=lambda k: k.width * free[id(k)])
        if free[id(most)] < LEAST or most.level >= EXACT - 1:
            return
        gone = sum(halve(part.rows, part.grade, most.level, part.line) for part in most.parts)
        most.level += 1
        free[id(most)] -= gone
        total -= most.width * gone
