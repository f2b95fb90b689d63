"""Lines that are one text with numbers in it, found in a block by the signs behind their numbers.

Of one line it is worked out which few signs stand behind its numbers. Where these signs stand in a whole block is one
comparison each; lines with the same signs in the same order are candidates. Everything between their numbers is then
compared to the byte, and the numbers are converted where they stand by pyarrow, correctly rounded, as `float` does. A
line in which anything else differs is left to the readers of single lines.

A number may have more or fewer digits, a sign or an exponent, but only where that changes nothing in how the line is
cut and understood: tried on the line itself before it is taken for a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.readers.line_blocks import DIGITS_AS_ZEROS, LONGEST_SHAPE, Block, Cuts
from traindx_tools.on_logs.readers.spans import Offsets, cast
from traindx_tools.on_logs.run import Floats, Ints

IN_NUMBERS = frozenset(b"0123456789+-.eExX")
"""Signs that separate nothing, since numbers hold them."""
_COMPARED, _FOUND = 0.17, 6.0
"""Nanoseconds a byte to look for one sign, and for each that is found: measured, only their ratio counts."""
_MOST_CHOSEN, _MOST_LOOKED = 3, 14
_VARIED = {True: ("7", "1234", "12345678", "1234567890123"),
           False: ("0.5", "1234.25", "12.345678901234567", "1.5e-05", "2.25E+07", "-1.5", "+2.5", "-1.5e-05")}
"""What is put in the place of a whole number, and of another one, to see whether the line is still understood so."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pattern:
    """One text with numbers in it. `prefix`: how it begins, each digit as 0."""

    prefix: bytes
    gaps: tuple[bytes, ...]
    """What stands before the first number, behind the prefix, then behind each; the last with the end of the line."""
    separators: bytes
    order: bytes
    """The separators of a line, as they follow each other."""
    ends: tuple[tuple[int, int], ...]
    """Of each number: which separator of the line is behind it, and how many bytes behind its end."""
    kinds: str
    """Of each number: "i" for a whole one, "f" for one with a point, "e" for one digit with an exponent."""

    def found(self, block: Block, cuts: Cuts) -> tuple[Ints, list[Floats]] | None:
        """The lines that have it, ascending, and their numbers, one after the other; None where they are too few."""
        places, rows = self._candidates(cuts)
        if not len(places):
            return None
        whole = len(places) == len(cuts.line)
        starts = block.starts[:len(places)] if whole else block.starts[places]
        edges = self._edges(starts, rows)
        for holds in (self._within, self._verified):
            good = holds(block.data, starts, edges, rows[:, -1])
            if good is not None:
                places, starts, rows, edges = places[good], starts[good], rows[good], [e[good] for e in edges]
        numbers = self._numbers(block.data, edges) if len(places) else None
        return None if numbers is None else (places, numbers)

    def _candidates(self, cuts: Cuts) -> tuple[Ints, Ints]:
        """The lines with these separators in this order, and where each of them stands: shape (lines, separators)."""
        width, count = len(self.order), len(cuts.line)
        if cuts.order == self.order:
            return np.arange(count), cuts.at.reshape(count, width)
        counts = np.diff(cuts.line, prepend=-1)
        places = np.flatnonzero(counts == width)
        mine = np.repeat(counts == width, counts)
        signs, rows = cuts.signs[:len(mine)][mine], cuts.at[:len(mine)][mine].reshape(-1, width)
        same = _same(signs.tobytes(), self.order, len(places))
        return (places, rows) if same is None else (places[same], rows[same])

    def _edges(self, starts: Ints, rows: Ints) -> list[Ints]:
        """Where the first number of each line begins, where it ends, where the second begins, and so on."""
        edges: list[Ints] = []
        before = starts + len(self.prefix)
        for gap, (which, behind) in zip(self.gaps, self.ends, strict=False):
            edges.append(before + len(gap))
            before = rows[:, which] - behind
            edges.append(before)
        return edges

    def _within(self, _: bytes, starts: Ints, edges: list[Ints], ends: Ints) -> Mask | None:
        """The lines of a usual length in which each number begins before it ends, and the text behind the last one
        ends with the line; None for all."""
        return _all([_unless_all(begin < end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
                    + [_unless_all(edges[-1] + (len(self.gaps[-1]) - 1) == ends),
                       _unless_all(ends - starts <= LONGEST_SHAPE)])

    def _verified(self, data: bytes, starts: Ints, edges: list[Ints], _: Ints) -> Mask | None:
        """Which of the lines have this text between their numbers; None for all."""
        return _all([
            _begin_so(data, starts, self.prefix),
            _read(data, starts + len(self.prefix), self.gaps[0]),
            *(_read(data, at, gap) for gap, at in zip(self.gaps[1:], edges[1::2], strict=True) if gap != b"\n"),
            *(_of_kind(data, begin, end, kind) for kind, begin, end in zip(
                self.kinds, edges[::2], edges[1::2], strict=True)),
        ])

    def _numbers(self, data: bytes, edges: list[Ints]) -> list[Floats] | None:
        """The numbers, one of the line after the other; None where one is none."""
        found: list[Floats] = [np.zeros(0)] * len(self.kinds)
        for whole in (True, False):
            mine = [i for i, kind in enumerate(self.kinds) if (kind == "i") == whole]
            if not mine:
                continue
            spans: Offsets = np.empty((len(edges[0]), 2 * len(mine)), np.int32)
            for column, i in enumerate(mine):
                spans[:, 2 * column], spans[:, 2 * column + 1] = edges[2 * i], edges[2 * i + 1]
            values = cast(data, spans, whole)
            if values is None:
                return None
            for i, column_ in zip(mine, values, strict=True):
                found[i] = column_
        return found


def _of_kind(data: bytes, begins: Ints, ends: Ints, kind: str) -> Mask | None:
    """Which numbers are of their kind, and none that pyarrow alone would read (0x1F); None for all."""
    if kind == "f":
        return _with_point(data, begins, ends)
    if kind == "i" and int((ends - begins).max(initial=0)) < len("0x1"):
        return None
    second = np.frombuffer(data, np.uint8)[begins + 1] | 32
    return _unless_all(second == ord("e") if kind == "e" else (second != ord("x")) | (ends - begins < len("0x1")))


def _with_point(data: bytes, begins: Ints, ends: Ints) -> Mask | None:
    """Which numbers have a point; None for all. Most have it behind one digit, or a sign and one."""
    signs = np.frombuffer(data, np.uint8)
    good = (signs.take(begins + 1) == ord(".")) & (begins + 1 < ends)
    left = np.flatnonzero(~good)
    for behind in (0, *range(2, int((ends - begins).max(initial=0)))):
        if not len(left):
            return None
        at = begins[left] + behind
        found = (at < ends[left]) & (signs.take(at, mode="clip") == ord("."))
        good[left[found]] = True
        left = left[~found]
    return _unless_all(good)


def _unless_all(good: Mask) -> Mask | None:
    return None if good.all() else good


def pattern_of(line: bytes, spans: Sequence[tuple[int, int]], start: int,
               preferred: Iterable[bytes] = ()) -> Pattern | None:
    """The pattern of a line, which has its numbers at `spans`, in order, and a prefix up to `start`.

    `preferred`: separators that are looked for anyway. None for lines whose numbers are written in other ways, and for
    those with digits between them. Whether digits may differ at all is asked elsewhere (`may_vary`).
    """
    text = line + b"\n"
    edges = [start, *(e for _, e in spans)]
    gaps = tuple(text[a:b] for a, b in zip(edges, [*(s for s, _ in spans), len(text)], strict=True))
    kinds = "".join(_kind(line[a:b]) for a, b in spans)
    if not spans or "?" in kinds or not text.isascii() or any(c in b"0123456789" for gap in gaps for c in gap):
        return None
    if not all(map(_usable, gaps[1:])) or gaps[0][-1:].isalnum():
        return None
    fits = (s for s in preferred if all(any(c in s for c in _usable(gap)) for gap in gaps[1:]))
    separators = next(fits, None) or _chosen(text, gaps[1:])
    order = bytes(c for c in text if c in separators)
    ends = []
    for (_, end), gap in zip(spans, gaps[1:], strict=True):
        behind = next(i for i, c in enumerate(gap) if c in separators and c not in IN_NUMBERS)
        ends.append((sum(c in separators for c in text[:end + behind]), behind))
    return Pattern(text[:start].translate(DIGITS_AS_ZEROS), gaps, separators, order, tuple(ends), kinds)


def varied(line: str, spans: Sequence[tuple[int, int]], kinds: str) -> Iterable[tuple[str, list[str]]]:
    """The line with other numbers in the place of its own, and these numbers."""
    for turn in range(max(map(len, _VARIED.values()))):
        of_kind = {"i": _VARIED[True][turn % 4], "f": _VARIED[False][turn], "e": ("1e-05", "7e+10")[turn % 2]}
        numbers = [of_kind[kind] for kind in kinds]
        texts = [line[a:b] for a, b in zip([0, *(e for _, e in spans)], [s for s, _ in spans], strict=False)]
        yield "".join(t + n for t, n in zip(texts, numbers, strict=True)) + line[spans[-1][1]:], numbers


def _kind(number: bytes) -> str:
    if number.isdigit():
        return "i"
    mantissa, _, power = number.lstrip(b"+-").lower().partition(b"e")
    if mantissa.count(b".") == 1 and mantissa.replace(b".", b"").isdigit() and b"." not in power:
        return "f"
    return "e" if len(mantissa) == 1 and number[:1].isdigit() and power.lstrip(b"+-").isdigit() else "?"


def _usable(gap: bytes) -> set[int]:
    return {*gap} - IN_NUMBERS


def _chosen(text: bytes, gaps: Sequence[bytes]) -> bytes:
    """The separators that cost least: one at least behind each number, and the end of the line."""
    usable = [_usable(gap) for gap in gaps]
    looked = sorted(set().union(*usable) - {10}, key=lambda c: (-sum(c in u for u in usable), text.count(c)))
    counts = {c: text.count(c) for c in (10, *looked)}
    best = (math.inf, bytes({10, *(min(u) for u in usable if 10 not in u)}))
    for count in range(_MOST_CHOSEN + 1):
        for signs in combinations(looked[:_MOST_LOOKED], count):
            one = (10, *signs)
            if not any(u.isdisjoint(one) for u in usable):
                cost = _COMPARED * len(one) * len(text) + _FOUND * sum(counts[c] for c in one)
                best = min(best, (cost, bytes(one)))
    return best[1]


def _begin_so(data: bytes, starts: Ints, prefix: bytes) -> Mask | None:
    """Which lines begin so, digits aside; None for all."""
    if not prefix:
        return None
    count = len(starts)
    differs = np.frombuffer(_texts(data, starts, len(prefix)), np.uint8) ^ np.frombuffer(prefix * count, np.uint8)
    most = bytes(9 if c == ord("0") else 0 for c in prefix)  # by which a digit differs from 0, bit by bit
    good = differs <= np.frombuffer(most * count, np.uint8)
    return None if good.all() else np.asarray(good.reshape(count, -1).all(axis=1))


def _read(data: bytes, at: Ints, text: bytes) -> Mask | None:
    """Where a text stands; None for everywhere."""
    return None if not text else _same(_texts(data, at, len(text)), text, len(at))


def _same(found: bytes, text: bytes, count: int) -> Mask | None:
    if found == text * count:
        return None
    return np.asarray((np.frombuffer(found, np.uint8).reshape(count, -1) == np.frombuffer(text, np.uint8)).all(axis=1))


def _texts(data: bytes, at: Ints, length: int) -> bytes:
    """The bytes from each place on, one after the other."""
    windows: NDArray[np.void] = np.ndarray((len(data) - length + 1,), f"V{length}", buffer=data, strides=(1,))
    found: bytes = windows[at].tobytes()
    return found


def _all(each: Iterable[Mask | None]) -> Mask | None:
    """What holds for each; None where that is all."""
    found = [one for one in each if one is not None]
    return np.logical_and.reduce(found) if found else None
