"""Where some rows or columns of a large matrix are in another one, by correlation, without holding either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.tensor import CHUNK, STORED, Tensor, as_numbers

LINES = 96
"""Lines that are looked for."""
MOST_VALUES, MOST_HELD = 2**26, 2**25
"""Values of a matrix that is gone through; bytes of one that is held to look at its columns."""
_SHORTEST = 8


@dataclass(frozen=True)
class Placed:
    """A line of the first matrix and the one of the second that is most alike."""

    at: int
    to: int
    like: float
    own: float
    """How alike it is to the line at its own place."""


def sampled_order(one: Tensor, other: Tensor, axis: int) -> list[Placed]:
    """Some lines of `one` in `other`; none where the matrices are too large or their lines too short.

    `axis`: 0 for rows, 1 for columns. Raises UnreadableInput.
    """
    if one.shape != other.shape or len(one.shape) != 2 or one.size > MOST_VALUES or one.shape[1 - axis] < _SHORTEST:
        return []
    if axis == 1 and max(one.nbytes, other.nbytes) > MOST_HELD:
        return []
    lines = one.shape[axis]
    places = np.unique(np.random.default_rng(0).integers(0, lines, LINES))
    wanted = _normal(_lines(one, places, axis))
    best, to = np.full(len(places), -2.0), np.zeros(len(places), np.intp)
    own = np.zeros(len(places))
    for start, block in _blocks(other, axis):
        likeness = wanted @ _normal(block).T
        at = likeness.argmax(axis=1)
        like = likeness[np.arange(len(places)), at]
        better = like > best
        best[better], to[better] = like[better], at[better] + start
        here = (places >= start) & (places < start + len(block))
        own[here] = likeness[here, places[here] - start]
    return [Placed(int(p), int(t), float(b), float(o)) for p, t, b, o in zip(places, to, best, own, strict=True)]


def _lines(tensor: Tensor, places: NDArray[np.intp], axis: int) -> NDArray[np.float32]:
    if axis == 1:
        return np.asarray(tensor.load().T[places], np.float32)
    stored = np.concatenate([np.frombuffer(tensor.row(int(p)), np.uint8) for p in places])
    return _numbers(stored, tensor).reshape(len(places), -1)


def _blocks(tensor: Tensor, axis: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Lines in order, with the number of the first."""
    if axis == 1:
        yield 0, np.asarray(tensor.load().T, np.float32)
        return
    width = tensor.shape[1] * tensor.itemsize
    rows = max(1, CHUNK // width)
    for start in range(0, tensor.shape[0], rows):
        count = min(rows, tensor.shape[0] - start)
        parts = [p.copy() for p in tensor.source.parts(start * width, count * width, count * width)]
        yield start, _numbers(np.concatenate(parts), tensor).reshape(count, -1)


def _numbers(stored: NDArray[np.uint8], tensor: Tensor) -> NDArray[np.float32]:
    return np.asarray(as_numbers(stored.view(STORED[tensor.dtype]), tensor.dtype), np.float32)


def _normal(lines: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(lines, axis=1, keepdims=True)
    return np.asarray(lines / np.where(norm > 0, norm, np.inf), np.float32)
