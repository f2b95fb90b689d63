"""Numbers that come one by one or a block at a time, kept in the order in which they came.

Room is taken in large steps, of which nothing is used before it is written to: pages of a long log are touched once.
Numbers that count on (lines, the records of a series with a value in each) and those of which none is known (NaN) take
none.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 4
"""Times the room that is taken when there is none left: a third of what is kept is moved."""


def unknown(count: int) -> NDArray[np.float64]:
    """So many NaN, which take no room; not to be written to."""
    return np.broadcast_to(np.float64(np.nan), count)


class Growing:
    """Numbers of one type. `append` takes a single one."""

    __slots__ = ("_block", "_filled", "_first", "_single", "_unknown", "append")

    def __init__(self, kind: str) -> None:
        """`kind`: the letter of `array` for the type, as in "d"."""
        self._block: NDArray[Any] = np.zeros(0, kind)
        self._filled = 0
        self._first: int | None = None
        """Where those of the block would count on from this one: it is empty then."""
        self._unknown = False
        """Whether those of the block would all be NaN: it is empty then."""
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
        return self.between(len(self) - 1, len(self))[0].item() if len(self) else None

    def pop(self) -> None:
        """Drops the last, which has to have come alone."""
        self._single.pop()

    def extend(self, numbers: NDArray[Any] | range) -> None:
        """Takes a block of numbers."""
        if self._single:
            single = np.array(self._single, self._block.dtype)
            del self._single[:]
            self._put(single)
        if not self._goes_on(numbers):
            self._put(np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers)

    def _goes_on(self, numbers: NDArray[Any] | range) -> bool:
        """Takes numbers that need no room, if they are such."""
        if not len(numbers):
            return True
        if isinstance(numbers, range):
            if self._first is None and not self._filled:
                self._first = numbers.start
            goes_on = self._first is not None and numbers.start == self._first + self._filled
        else:
            goes_on = (self._unknown or not self._filled) and self._block.dtype.kind == "f" and len(numbers) > 0 and (
                numbers[0] != numbers[0]) and (numbers.strides == (0,) or bool(np.isnan(numbers).all()))
            self._unknown = self._unknown or goes_on
        self._filled += len(numbers) if goes_on else 0
        return goes_on

    def _put(self, numbers: NDArray[Any]) -> None:
        if not len(numbers):
            return
        end = self._filled + len(numbers)
        if end > len(self._block) or self._first is not None or self._unknown:
            self._take_room(end)
        self._block[self._filled:end] = numbers
        self._filled = end

    def _take_room(self, end: int) -> None:
        before = self.between(0, self._filled)
        self._block = np.empty(max(end, STEP * len(before)), self._block.dtype)
        self._block[:len(before)] = before
        self._first, self._unknown = None, False

    def between(self, start: int, end: int) -> NDArray[Any]:
        """Those from one place to another; not to be written to."""
        if self._single:
            self.extend(self._block[:0])
        if self._first is not None:
            return np.arange(self._first + start, self._first + end, dtype=self._block.dtype)
        return np.broadcast_to(self._block.dtype.type(np.nan), end - start) if self._unknown else self._block[start:end]

    def some(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Those at some places; not to be written to."""
        if self._single:
            self.extend(self._block[:0])
        if self._first is not None:
            return (places + self._first).astype(self._block.dtype, copy=False)
        return unknown(len(places)) if self._unknown else self._block.take(places)

    def told(self) -> NDArray[Any]:
        """All of them; not to be written to."""
        return self.between(0, len(self))

    def cut(self, count: int) -> None:
        """Leaves the first ones."""
        self.extend(self._block[:0])
        self._filled = count
        if not count:
            self._first, self._unknown = None, False

    def put(self, at: int, numbers: NDArray[Any]) -> None:
        """Takes these, which may be some of them, in the place of all from one on."""
        if self._unknown and at and not self._single:
            self._filled = at + len(numbers)
            return
        self.cut(at)
        self.extend(numbers)
