"""Numbers that come one by one or a block at a time, kept in the order in which they came.

Room is taken in large steps, of which nothing is used before it is written to: pages of a long log are touched once.
Places that count on from 0 (a series with a value in every record) are kept as their number and take none.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 4
"""Times the room that is taken when there is none left: a third of what is kept is moved."""


class Growing:
    """Numbers of one type. `append` takes a single one."""

    __slots__ = ("_block", "_counted", "_filled", "_single", "append")

    def __init__(self, kind: str) -> None:
        """`kind`: the letter of `array` for the type, as in "d"."""
        self._block: NDArray[Any] = np.zeros(0, kind)
        self._filled = 0
        self._counted = False
        """Whether the block would hold 0, 1, 2 and so on: it is empty then."""
        self._single: array[Any] = array(kind)
        """Those that came behind the block."""
        self.append: Callable[[Any], None] = self._single.append

    def __len__(self) -> int:
        return self._filled + len(self._single)

    @property
    def last(self) -> Any:
        """The last one, None where there is none."""
        if self._single:
            return self._single[-1]
        return None if not self._filled else self._filled - 1 if self._counted else self._block[self._filled - 1].item()

    def pop(self) -> None:
        """Drops the last, which has to have come alone."""
        self._single.pop()

    def extend(self, numbers: NDArray[Any] | range) -> None:
        """Takes a block of numbers."""
        if self._single:
            single = np.array(self._single, self._block.dtype)
            del self._single[:]
            self._put(single)
        if isinstance(numbers, range) and numbers.start == self._filled and (self._counted or not self._filled):
            self._counted, self._filled = True, numbers.stop
        else:
            self._put(np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers)

    def _put(self, numbers: NDArray[Any]) -> None:
        end = self._filled + len(numbers)
        if self._counted or end > len(self._block):
            self._take_room(end)
        self._block[self._filled:end] = numbers
        self._filled = end

    def _take_room(self, end: int) -> None:
        before = self._written()
        self._block = np.empty(max(end, STEP * len(before)), self._block.dtype)
        self._block[:len(before)] = before
        self._counted = False

    def _written(self) -> NDArray[Any]:
        return np.arange(self._filled, dtype=self._block.dtype) if self._counted else self._block[:self._filled]

    def told(self) -> NDArray[Any]:
        """All of them; not to be written to."""
        if self._single:
            self.extend(self._block[:0])
        return self._written()

    def cut(self, count: int) -> None:
        """Leaves the first ones."""
        self.told()
        self._filled = count

    def put(self, at: int, numbers: NDArray[Any]) -> None:
        """Takes these, which may be some of them, in the place of all from one on."""
        self.cut(at)
        self.extend(numbers)
