"""Tensors of one value, measured many at once: a file may hold hundreds of thousands of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import STORED, Damaged, InFile, Tensor, as_numbers


def measured(tensors: Sequence[Tensor]) -> list[Stats]:
    """Statistics of tensors of one value each, all of one type. Raises UnreadableInput where a file ends too early."""
    stored = np.frombuffer(b"".join(_stored(tensors)), STORED[tensors[0].dtype])
    numbers = as_numbers(stored, tensors[0].dtype)
    doubles = numbers.astype(np.float64)
    nan, inf = np.isnan(doubles), np.isinf(doubles)
    finite = np.where(nan | inf, 0.0, doubles)
    with np.errstate(all="ignore"):
        squares = finite**2
    each = zip(tensors, finite.tolist(), nan.tolist(), inf.tolist(), strict=True)
    return [Stats(tensor, value, value, int(is_nan), int(is_inf), -1 if not (is_nan or is_inf) else 0,
                  squares[i:i + 1], sample=numbers[i:i + 1], stored_sample=stored[i:i + 1])  # type: ignore[arg-type]
            for i, (tensor, value, is_nan, is_inf) in enumerate(each)]


def _stored(tensors: Sequence[Tensor]) -> Iterator[bytes]:
    """The bytes of each tensor; a file is opened once for those of it that follow each other."""
    size = tensors[0].itemsize
    for path, own in groupby((t.source for t in tensors), key=lambda s: s.path if isinstance(s, InFile) else None):
        if path is None:
            yield from (part.tobytes() for source in own for part in source.parts(0, size, size))
            continue
        with open(path, "rb") as stream:
            for offset in (source.offset for source in own if isinstance(source, InFile)):
                stream.seek(offset)
                data = stream.read(size)
                if len(data) != size:
                    raise Damaged(f"{path}: ends inside a tensor: it was not written whole")
                yield data


def number_of(value: object) -> float | None:
    """A count of steps and the like, as a number or a tensor of one."""
    if isinstance(value, Tensor) and value.size == 1:
        return float(np.asarray(value.load()).reshape(-1)[0])
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
