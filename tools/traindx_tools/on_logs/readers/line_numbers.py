"""Numbers that stand in the same place of many lines, converted together and to the last bit as `float` does it.

Eight digits are read as one word of 64 bits and folded in three multiplications. A whole number of at most fifteen
digits is exact as a double, and so is a power of ten up to 10**22: their product or quotient is rounded once, and right
(Clinger, How to Read Floating Point Numbers Accurately, 1990). Up to nineteen digits the same holds in the 80 bits of
the processor, up to 10**27; where rounding these to 64 bits could differ (about one in seven hundred) and in all other
cases the text goes through `float`.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats, Ints

_NUMBER = re.compile(rb"([+-]?)(0*)(?:(\.)(0*))?(?:[eE]([+-]?)(0+))?")
_TENS = np.array([10**i for i in range(20)], np.uint64)
_WORD = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_EXACT, _EXACT_POWER = 15, 22
"""Digits, and powers of ten, that a double holds exactly."""
_WIDE, _WIDE_POWER = 18, 27
"""The same of an x87 number."""
_POWERS = np.array([float(10**i) for i in range(_EXACT_POWER + 1)])
_IS_WIDE = np.finfo(np.longdouble).nmant == 63 and sys.byteorder == "little"
_WIDE_POWERS = np.cumprod(np.array([1] + [10] * _WIDE_POWER, np.longdouble))
_HALF = 0x400
"""The bits that a double drops, where they are one half of its last."""

Words = NDArray[np.uint64]


class Place(NamedTuple):
    """A number in the lines of one shape: where its digits begin, counted from the line, and how many they are."""

    whole: int
    wholes: int
    part: int
    """Where the digits behind the point begin."""
    parts: int
    power: int
    """Where those of the exponent begin."""
    powers: int
    sign: float
    """Of the number, 1 or -1."""
    power_sign: int
    start: int
    end: int
    constant: float
    """What stands there in all lines, where it has no digits ("nan"); else NaN."""

    @property
    def differs(self) -> bool:
        """Whether its value differs from line to line at all."""
        return self.wholes + self.parts > 0


NOWHERE = Place(0, 0, 0, 0, 0, 0, 1.0, 1, 0, 0, math.nan)


def place(start: int, end: int, mask: bytes) -> Place | None:
    """The number from `start` to `end` of lines in which it is written as `mask` but for its digits; None for none."""
    if _WORD.fullmatch(mask):
        return NOWHERE._replace(start=start, end=end, constant=float(mask))
    found = _NUMBER.fullmatch(mask)
    if found is None or not (found[2] or found[4]):
        return None
    at = [start + max(found.start(i), 0) for i in (2, 4, 6)]
    count = [len(found[i] or b"") for i in (2, 4, 6)]
    return Place(at[0], count[0], at[1], count[1], at[2], count[2], -1.0 if found[1] == b"-" else 1.0,
                 -1 if found[5] == b"-" else 1, start, end, math.nan)


def numbers(data: bytes, starts: Ints, places: Sequence[Place], counts: Sequence[int]) -> Floats:
    """The number in each of the lines that begin at `starts`: shape (lines,).

    The first `counts[0]` lines have it at `places[0]`, the next `counts[1]` at `places[1]`, and so on.
    """
    if not any(p.differs for p in places):
        return np.repeat([p.constant for p in places], counts)
    each = np.repeat(np.array([p[:6] for p in places], np.int64), counts, axis=0)
    parts, count = each[:, 3], each[:, 1] + each[:, 3]
    mantissa = digits(data, starts + each[:, 0], np.minimum(each[:, 1], _WIDE))
    if parts.any():
        small = np.flatnonzero(count > _WIDE)
        read = np.minimum(parts, _WIDE)
        below = digits(data, starts + each[:, 2] + (parts - read), read)
        if len(small):  # 0.00012345678901234567: more digits than count
            count = count.copy()
            leading = digits(data, (starts + each[:, 2])[small], np.minimum(parts - read, 8)[small])
            fits = (mantissa[small] == 0) & (leading == 0) & (parts[small] <= _WIDE + 8)
            count[small[fits]] = _WIDE
        mantissa = mantissa * _TENS[read] + below
    scale = -parts
    if each[:, 5].any():
        scale = scale + np.repeat([p.power_sign for p in places], counts) * digits(
            data, starts + each[:, 4], np.minimum(each[:, 5], 8)).astype(np.int64)
    value = _scaled(mantissa, scale, count)
    odd = np.flatnonzero(np.isnan(value))
    if len(odd):
        ends = np.repeat([p[8:10] for p in places], counts, axis=0)[odd] + starts[odd, None]
        value[odd] = [abs(float(data[a:b])) for a, b in ends.tolist()]
    if any(p.sign < 0 for p in places):
        value *= np.repeat([p.sign for p in places], counts)
    if not all(p.differs for p in places):
        value = np.where(np.repeat([p.differs for p in places], counts), value,
                         np.repeat([p.constant for p in places], counts))
    return value


def _scaled(mantissa: Words, scale: Ints, count: Ints) -> Floats:
    """Mantissa times a power of ten, NaN where that cannot be said to the last bit."""
    size = np.abs(scale)
    easy = (count <= _EXACT) & (size <= _EXACT_POWER)
    power = _POWERS[np.minimum(size, _EXACT_POWER)]
    plain = mantissa.astype(np.float64)
    value: Floats = np.where(scale < 0, plain / power, plain * power)
    hard = np.flatnonzero(~easy)
    if len(hard):
        value[hard] = _wide(mantissa[hard], scale[hard], count[hard])
    return value


def _wide(mantissa: Words, scale: Ints, count: Ints) -> Floats:
    """The same in 80 bits; NaN also where rounding twice may differ from rounding once."""
    if not _IS_WIDE:
        return np.full(len(mantissa), math.nan)
    size = np.abs(scale)
    power = _WIDE_POWERS[np.minimum(size, _WIDE_POWER)]
    wide = mantissa.astype(np.longdouble)
    wide = np.where(scale < 0, wide / power, wide * power)
    dropped = (np.ascontiguousarray(wide).view(np.uint64)[::2] & np.uint64(0x7FF)).astype(np.int64)
    known = (size <= _WIDE_POWER) & (count <= _WIDE) & (np.abs(dropped - _HALF) > 1)
    return np.asarray(np.where(known, wide.astype(np.float64), math.nan))


def digits(data: bytes, at: Ints, count: Ints) -> Words:
    """The whole number that `count` digits from each place on make, of more than sixteen the last sixteen's and more.

    Counts of 0 give 0.
    """
    if int(count.max(initial=0)) > 8:
        few = np.minimum(count, 8)
        return np.asarray(digits(data, at, count - few) * np.uint64(10**8) + digits(data, at + (count - few), few))
    found = words(data, at)
    found <<= (8 * (8 - count)).astype(np.uint64)
    found[count == 0] = 0
    found &= np.uint64(0x0F0F0F0F0F0F0F0F)
    for factor, shift, kept in ((2561, 8, 0x00FF00FF00FF00FF), (6553601, 16, 0x0000FFFF0000FFFF),
                                (42949672960001, 32, 0xFFFFFFFF)):
        found *= np.uint64(factor)
        found >>= np.uint64(shift)
        found &= np.uint64(kept)
    return found


def words(data: bytes, at: Ints) -> Words:
    """The eight bytes from each place on, the first of them lowest; zeros behind the end of the data."""
    last = len(data) - 8
    behind = np.flatnonzero(at > last)
    found: Words = np.zeros(len(at), np.uint64)
    if len(behind) < len(at):
        windows = np.ndarray((last + 1,), "<u8", buffer=data, strides=(1,))
        found = np.asarray(windows[np.minimum(at, last)], np.uint64)
    found[behind] = [int.from_bytes(data[a:a + 8], "little") for a in at[behind].tolist()]
    return found
