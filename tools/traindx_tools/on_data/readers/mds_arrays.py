"""Arrays of MDS samples whose type or shape stands before their values: `ndarray:int32`, `ndarray`.

A byte for the type where the encoding names none; a byte with the number of axes (times four) and the width of their
lengths, then the lengths, where it names no shape; then the values (streaming/base/format/mds/encodings.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.readers.arrays import sequence_column

_SIZED = {8: "8", 16: "16", 32: "32", 64: "64"}
_TYPES = {bits + k: f"{kind}{size}" for bits, size in _SIZED.items() for k, kind in enumerate(("uint", "int", "float"))
          if (kind, size) != ("float", "8")}
TYPES = frozenset(_TYPES.values())


def array_of(data: bytes, form: str) -> Array:
    """The array; `form`: what the encoding says behind `ndarray:`. Raises ValueError where the bytes are none."""
    dtype, _, shape = form.partition(":")
    at = 0
    if not dtype:
        dtype, at = _TYPES.get(data[0] if data else -1, ""), 1
    if dtype not in TYPES:
        raise ValueError(f"an array of {dtype!r}")
    if shape:
        lengths = [int(n) for n in shape.split(",")]
    else:
        lengths, at = _lengths(data, at)
    values = np.frombuffer(data[at:], np.dtype(dtype).newbyteorder("<"))
    return values.reshape(lengths)


def _lengths(data: bytes, at: int) -> tuple[list[int], int]:
    if at >= len(data):
        raise ValueError("it ends before its shape")
    axes, width = data[at] >> 2, 1 << (data[at] & 3)
    end = at + 1 + axes * width
    if not axes or end > len(data):
        raise ValueError("it ends within its shape")
    return [int(n) for n in np.frombuffer(data[at + 1:end], f"<u{width}")], end


def columns_of_arrays(arrays: Mapping[str, Sequence[Array]], rows: int, name: str) -> dict[str, Column]:
    """A column of each field that all rows have: an array where the shapes are alike, else a sequence of items."""
    out: dict[str, Column] = {}
    for field, found in arrays.items():
        if len(found) != rows:
            continue
        if len({a.shape for a in found}) == 1:
            out[field] = Column(field, "number", np.stack(found), name)
        elif all(a.ndim == 1 for a in found):
            out[field] = sequence_column(field, found, name)
    return out
