"""Numbers that stand in the same place of many lines, converted together and to the last bit as `float` does it.

A number of at most fourteen digits is a whole number, exact as a double, over or times a power of ten up to 10**22,
exact as well: one rounding, the right one (Clinger, How to Read Floating Point Numbers Accurately, 1990). All others go
through `float`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats

_NUMBER = re.compile(rb"([+-]?)(0*)(?:(\.)(0*))?(?:[eE]([+-]?)(0+))?")
_WORD = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
MOST_DIGITS = 14
_MOST_POWER = 22
_POWERS = 10.0 ** np.arange(_MOST_POWER + 1)

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Place:
    """A number in the lines of one shape: from `start` to `end`, written as `mask` but for its digits."""

    start: int
    end: int
    mask: bytes

    @property
    def understood(self) -> bool:
        """Whether it is a number as `float` takes it, whatever its digits are."""
        found = _NUMBER.fullmatch(self.mask)
        return bool(_WORD.fullmatch(self.mask) or (found and (found[2] or found[4])))

    @property
    def digits(self) -> bool:
        """Whether its value differs from line to line at all."""
        return b"0" in self.mask

    def read(self, rows: Bytes) -> Floats:
        """The value in each row: shape (rows,)."""
        if not self.digits:
            return np.full(len(rows), float(self.mask))
        found = _NUMBER.fullmatch(self.mask)
        assert found is not None
        before, after, power = found[2], found[4] or b"", found[6]
        if len(before) + len(after) > MOST_DIGITS:
            return self._one_by_one(rows)
        at = self.start + len(found[1])
        mantissa = _whole(rows, at, found[0][len(found[1]):][: len(before) + len(after) + (found[3] is not None)])
        if power is None:
            value = mantissa / _POWERS[len(after)] if after else mantissa
        else:
            exponent = _whole(rows, self.end - len(power), power) * (-1.0 if found[5] == b"-" else 1.0) - len(after)
            if (np.abs(exponent) > _MOST_POWER).any():
                return self._one_by_one(rows)
            of_ten = _POWERS[np.abs(exponent).astype(np.int64)]
            value = np.where(exponent < 0, mantissa / of_ten, mantissa * of_ten)
        return -value if found[1] == b"-" else value

    def _one_by_one(self, rows: Bytes) -> Floats:
        texts = np.ascontiguousarray(rows[:, self.start:self.end]).view(f"S{self.end - self.start}").ravel()
        return texts.astype(np.float64)


def _whole(rows: Bytes, at: int, mask: bytes) -> Floats:
    """The whole number that the digits of a span make, a point among them passed over."""
    weights = np.zeros(len(mask))
    weight = 1.0
    for i in range(len(mask) - 1, -1, -1):
        if mask[i:i + 1] != b".":
            weights[i] = weight
            weight *= 10.0
    return rows[:, at:at + len(mask)].astype(np.float64) @ weights - 48.0 * weights.sum()
