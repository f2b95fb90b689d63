"""Numbers of a text at many places, converted where they stand by pyarrow: correctly rounded, as `float` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats, Ints

Mask = NDArray[np.bool_]
Offsets = NDArray[np.int32]
_PAIR = 2**32 + 1
"""A number times it is the number twice, as two of half as many bits."""


def cast(data: bytes, spans: Offsets, whole: bool, there: Mask | None = None) -> list[Floats] | None:
    """The numbers at places that ascend from row to row; each two columns of `spans` are where those of one column
    begin and end. None where one of them is none.

    `whole`: digits alone are numbers. `there`: of which places, shape (rows, columns), a number is expected: 0.0 at the
    others; None for all. For pyarrow they are texts of one array with what stands between them, which is marked as
    absent.
    """
    offsets: Offsets = np.empty(spans.size + 1, np.int32)
    offsets[:-1] = spans.ravel()
    offsets[-1:] = offsets[-2:-1]
    told = _numbers(data, offsets, spans.shape[1] // 2, whole, there)
    found = None if told is None else [column.astype(np.float64) for column in told]
    if found is not None and there is not None:
        for i, column in enumerate(found):
            if not there[:, i].all():
                column[~there[:, i]] = 0.0
    return found


def cast_cells(data: bytes, begin: int, ends: Ints, width: int, wanted: Sequence[int]
               ) -> list[tuple[Floats, Mask]] | None:
    """The numbers of cells that follow each other from `begin` on, of `width` columns: those in the columns that are
    wanted, and which of them are not empty (anything stands where they are). None where one is no number.

    `ends`: where each cell ends; one sign behind it the next begins.
    """
    offsets = _offsets(begin, ends)
    if len(wanted) < width:
        cells = offsets[:-1].reshape(-1, width, 2)[:, wanted]
        offsets = np.append(cells.ravel(), cells[-1:, -1, 1]).astype(np.int32, copy=False)
    there = (offsets[1::2] > offsets[:-1:2]).reshape(-1, len(wanted))
    told = _numbers(data, offsets, len(wanted), False, None if there.all() else there)
    if told is None:
        return None
    return list(zip(map(np.ascontiguousarray, told), np.ascontiguousarray(there.T), strict=True))


def _offsets(begin: int, ends: Ints) -> Offsets:
    """Where the first cell begins, then where each ends and the next begins: written in pairs."""
    if sys.byteorder != "little":
        return np.append(begin, np.stack([ends, ends + 1], axis=1)).astype(np.int32)
    pairs = np.empty(len(ends) + 1, np.int64)
    np.multiply(ends, _PAIR, out=pairs[1:])
    pairs[1:] += _PAIR - 1
    offsets = pairs.view(np.int32)[1:]
    offsets[0] = begin
    return offsets


def _numbers(data: bytes, offsets: Offsets, width: int, whole: bool, there: Mask | None) -> list[NDArray[Any]] | None:
    """The columns of rows of so many numbers. `offsets`: where each begins and ends, and the last end again."""
    import pyarrow
    import pyarrow.compute

    size = len(offsets) - 1
    if not size:
        return [np.zeros(0)] * width
    texts = pyarrow.Array.from_buffers(pyarrow.string(), size,
                                       [pyarrow.py_buffer(b) for b in (_known(size, there), offsets, data)])
    try:
        told = pyarrow.compute.cast(texts, pyarrow.uint64() if whole else pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return None
    values = np.frombuffer(told.buffers()[1], np.uint64 if whole else np.float64)[told.offset:][:size:2]
    return [values[i::width] for i in range(width)]


def _known(size: int, there: Mask | None) -> NDArray[np.uint8]:
    """The bits that say which texts are numbers: every other one, or those of them that are there."""
    if there is None:
        return np.full((size + 7) // 8, 0b01010101, np.uint8)
    each = np.zeros(size, np.bool_)
    each[::2] = there.ravel()
    return np.packbits(each, bitorder="little")
