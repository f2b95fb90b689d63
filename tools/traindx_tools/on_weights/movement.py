"""How far each tensor moved from one checkpoint to another."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.tensor import CHUNK, STORED, Tensor, as_numbers


def movement(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> Mapping[str, float]:
    """The relative change of each floating tensor by its name in the first file; 0: not a bit."""
    found = match(one, other)
    return {a: relative_change(found.first[a], found.second[b]) for a, b in found.all_pairs
            if found.first[a].floating and found.first[a].size and found.second[b].floating}


def relative_change(one: Tensor, other: Tensor) -> float:
    """|b - a| / |a|; inf where only a is zero, nan where either is not finite. Raises UnreadableInput."""
    if one.size != other.size:
        raise UnreadableInput(f"{one.name} and {other.name} have different sizes")
    before = change = 0.0
    values = max(1, CHUNK // 8)
    with np.errstate(all="ignore"):
        for at in range(0, one.size, values):
            count = min(values, one.size - at)
            x, y = (_part(t, at, count) for t in (one, other))
            before += float(np.dot(x, x))
            x = y - x
            change += float(np.dot(x, x))
    return math.sqrt(change / before) if before > 0 else (0.0 if change == 0 else math.inf)


def _part(tensor: Tensor, at: int, count: int) -> NDArray[np.float64]:
    size = tensor.itemsize
    data = next(iter(tensor.source.parts(at * size, count * size, count * size)))
    return as_numbers(data.view(STORED[tensor.dtype]), tensor.dtype).astype(np.float64)
