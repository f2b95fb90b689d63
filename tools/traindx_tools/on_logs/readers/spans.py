"""Numbers of a text at many places, converted where they stand by pyarrow: correctly rounded, as `float` does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.run import Floats

Offsets = NDArray[np.int32]


def cast(data: bytes, spans: Offsets, whole: bool, there: NDArray[np.bool_] | None = None) -> list[Floats] | None:
    """The numbers at places that ascend from row to row; each two columns of `spans` are where those of one column
    begin and end. None where one of them is none.

    `whole`: digits alone are numbers. `there`: of which places, shape (rows, columns), a number is expected: 0.0 at the
    others; None for all. For pyarrow they are texts of one array with what stands between them, which is marked as
    absent.
    """
    import pyarrow
    import pyarrow.compute

    size = spans.size
    if not size:
        return [np.zeros(0)] * (spans.shape[1] // 2)
    offsets = np.empty(size + 1, np.int32)
    offsets[:-1] = spans.ravel()
    offsets[-1] = offsets[-2]
    if there is None:
        known = np.full((size + 7) // 8, 0b01010101, np.uint8)
    else:
        each = np.zeros((len(spans), spans.shape[1]), np.bool_)
        each[:, ::2] = there
        known = np.packbits(each, bitorder="little")
    texts = pyarrow.Array.from_buffers(pyarrow.string(), size, [pyarrow.py_buffer(b) for b in (known, offsets, data)])
    try:
        told = pyarrow.compute.cast(texts, pyarrow.uint64() if whole else pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return None
    values = np.frombuffer(told.buffers()[1], np.uint64 if whole else np.float64)[told.offset:][:size]
    table = values.reshape(len(spans), -1)[:, ::2]
    found = [table[:, i].astype(np.float64) for i in range(table.shape[1])]
    if there is not None:
        for i, column in enumerate(found):
            if not there[:, i].all():
                column[~there[:, i]] = 0.0
    return found
