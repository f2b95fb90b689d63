"""The records of a very long log that do not stand out: an even share of each kind stays (see `thinning.py`).

Records of one kind hold the same series. One of two that follow each other is dropped, again and again while there are
too many; which of both is drawn by the line of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Ints

EXACT = 127
"""The grade of a record that is never dropped; of others it is how often their kind was halved."""
GONE = -1
"""The grade of a record that is to be dropped."""
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


def kinds_of(count: int, series: Iterable[tuple[int, Records]]) -> Iterator[tuple[int, Records]]:
    """The records that hold the same series, each kind by a number of its own; a slice where these are all.

    `series`: a number and its records."""
    of_all, others = _signs(series)
    sign = np.full(count if others else 0, of_all)
    for number, records in others:
        sign[records] ^= number
    if count and (sign == sign[:1]).all():
        yield int(sign[0] if others else of_all), slice(0, count)
        return
    yield from _apart(sign, np.arange(len(sign)))


def _signs(series: Iterable[tuple[int, Records]]) -> tuple[Any, list[tuple[Any, Ints]]]:
    """The sign of all series with a value in each record together, and that of each other one with its records."""
    of_all, others = np.uint64(0), []
    for number, records in series:
        if isinstance(records, slice):
            of_all ^= _sign_of(number)
        else:
            others.append((_sign_of(number), records))
    return of_all, others


def _apart(sign: NDArray[np.uint64], rows: Ints) -> Iterator[tuple[int, Ints]]:
    """The rows of each sign."""
    for _turn in range(_TURNS):
        if not len(sign):
            return
        same = sign == sign[0]
        alike, other = np.flatnonzero(same), np.flatnonzero(~same)
        yield int(sign[0]), rows[alike]
        sign, rows = sign[other], rows[other]
    order = np.argsort(sign, kind="stable")
    edges = np.flatnonzero(np.diff(sign[order])) + 1
    yield from ((int(sign[part[0]]), rows[part]) for part in np.split(order, edges) if len(part))


def _free_kinds(exact: Mask, held: Iterable[Records]) -> Iterator[tuple[int, Ints]]:
    """As `kinds_of`, those of the records that do not stand out. Most hold the same: signs are made of the others."""
    of_all, others = _signs(enumerate(held))
    more, free = np.zeros(len(exact), np.bool_), ~exact
    for _, records in others:
        more[records] = True
    plain = np.flatnonzero(free & ~more if others else free)
    if len(plain):
        yield int(of_all), plain
    rows = np.flatnonzero(more & free) if others else plain[:0]
    sign = np.full(len(rows), of_all)
    for number, records in others:
        here = np.zeros(len(exact), np.bool_)
        here[records] = True
        sign[here[rows]] ^= number
    yield from _apart(sign, rows)


def graded(exact: Mask, held: Iterable[Records], levels: Mapping[int, int], line: Ints) -> NDArray[np.int8]:
    """Grades of new records: what stands out stays, the others are halved as often as their kind was.

    `held`: the records of each series; `levels`: how often, by kind."""
    grade = np.full(len(exact), GONE, np.int8)
    for sign, rows in _free_kinds(exact, held):
        level = levels.get(sign, 0)
        for each in range(level):
            rows = _halved(rows, each, line)
        grade[rows] = level
    grade[exact] = EXACT
    return grade


@lru_cache(maxsize=8192)
def _sign_of(number: int) -> Any:
    """A number of 64 bits, drawn by another."""
    drawn = blake2b(str(number).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(drawn, "little"))


def _first_goes(first: Ints, level: int, line: Ints) -> Mask:
    """Of which pairs the first is dropped, drawn by its line."""
    drawn = line.take(first).view(np.uint64)
    drawn *= _SPREAD
    drawn >>= np.uint64(40 + level % 16)
    drawn &= np.uint64(1)
    return np.asarray(drawn == 1)


def _halved(rows: Ints, level: int, line: Ints) -> Ints:
    """One of each two that follow each other, and the last of an odd number."""
    first = rows[0 : len(rows) // 2 * 2 : 2]
    left = np.where(_first_goes(first, level, line), rows[1::2], first)
    return np.append(left, rows[-1:]) if len(rows) % 2 else left


def halve(rows: Records, grade: NDArray[np.int8], level: int, line: Ints) -> int:
    """Marks one of each two that follow each other among the rows of a level as gone; the others rise to the next.

    How many are gone. `rows`: a slice for all that are graded."""
    here = grade == level
    at = np.flatnonzero(here) if isinstance(rows, slice) else rows[here[rows]]
    first, second = at[0 : len(at) // 2 * 2 : 2], at[1::2]
    first_goes = _first_goes(first, level, line)
    if isinstance(rows, slice):
        grade += here
    else:
        grade[at] = level + 1
    grade[np.where(first_goes, first, second)] = GONE
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
