"""Moments of an optimizer whose names say nothing: told by their shapes, their signs, and the bound between them.

Files of leaves (`jax.tree.leaves`, a list in a pickle, arrays that are numbered) keep no names. What Adam and its kin
keep is known all the same: two series of tensors with the shapes of the weights, in one order, of which one is of both
signs and the other never negative, and the square of the first is nowhere far above the second. Anchors and averages of
the weights go along with them, masks have two values: neither is taken for a moment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.on_weights.checkpoint import Checkpoint, MomentPair, Part
from traindx_tools.on_weights.moment_names import paired
from traindx_tools.on_weights.statistics import SMALLEST_NORMAL, Stats, measure
from traindx_tools.on_weights.tensor import Tensor

MOST_TENSORS = 2_000
MOST_READ = 2**28
"""Values of parts that are an optimizer's by name, which nothing else measures."""
FEWEST = 2
"""Tensors of a series, one of them a matrix."""
SIGNED = 0.9
"""Share of the first moments of some size that are of both signs: those of a dead layer are not."""
SIZE = 16
BOUND = 1e5
"""Times that the square of the mean of gradients is above the mean of their squares, at most: 1 / (1 - b2) and room."""
BEYOND = 0.01
"""Share of the values that may be beyond it: squares that were cut are not there to be compared."""
ALIKE = 0.5
"""Correlation with the weight from which on a series is a copy or an average of it."""
_NUMBER = re.compile(r"(\d+)")
_Series = tuple[Sequence[Tensor], Sequence[Tensor]]


def with_unnamed_moments(checkpoint: Checkpoint, measured: dict[int, Stats]) -> Checkpoint:
    """The same with such moments as `moment_pairs` and in a part of their own; itself where it has none.

    `measured`: statistics by `id` of the tensor, to which those of moments are added. Raises UnreadableInput.
    """
    if checkpoint.optimizers or any(paired(p.tensors, within=True) for p in checkpoint.parts if p.auxiliary):
        return checkpoint
    pairs = _found(checkpoint, measured)
    if not pairs:
        return checkpoint
    own = {id(t) for p in pairs for t in (p.first, p.second)}
    parts = [replace(p, tensors={n: t for n, t in p.tensors.items() if id(t) not in own}) for p in checkpoint.parts]
    moments = {t.key or t.name: t for p in pairs for t in (p.first, p.second)}
    return replace(checkpoint, parts=(*(p for p in parts if p.tensors), Part("optimizer", moments)),
                   moment_pairs=tuple(pairs))


def repeated(shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Where a series of shapes stands twice, one behind the other: its first place and its length, the longest first.
    """
    known = {s: i for i, s in enumerate(dict.fromkeys(shapes))}
    ids = np.array([known[s] for s in shapes], np.int64)
    for length in range(len(ids) // 2, FEWEST - 1, -1):
        same = np.concatenate([[0], np.cumsum(ids[:-length] == ids[length:])])
        for place in np.flatnonzero(same[length:] - same[:-length] == length):
            yield int(place), length


def _found(checkpoint: Checkpoint, measured: dict[int, Stats]) -> list[MomentPair]:
    lists = [[t for t in p.tensors.values() if t.floating and t.size > 1] for p in checkpoint.parts]
    every = [t for some in lists for t in some]
    if not 3 * FEWEST <= len(every) <= MOST_TENSORS or max(Counter(t.shape for t in every).values()) < 3:
        return []
    _measure([t for p in checkpoint.parts if p.auxiliary for t in p.tensors.values()], measured)
    every = [t for t in every if id(t) in measured]
    lists = [[t for t in some if id(t) in measured] for some in lists]
    for first, second in _series(every, lists):
        if _are_moments(first, second, measured):
            own = {id(t) for t in (*first, *second)}
            weights = _weights([t for t in every if id(t) not in own], second)
            if weights and not any(_goes_along(some, weights, measured) for some in (first, second)):
                return [MomentPair(m, v, w.key or w.name) for m, v, w in zip(first, second, weights, strict=True)]
    return []


def _measure(tensors: Sequence[Tensor], measured: dict[int, Stats]) -> None:
    left = MOST_READ
    for tensor in tensors:
        if tensor.floating and id(tensor) not in measured and 1 < tensor.size <= left:
            left -= tensor.size
            measured[id(tensor)] = measure(tensor)


def _series(every: Sequence[Tensor], lists: Sequence[Sequence[Tensor]]) -> Iterator[_Series]:
    """Two series with one order of shapes: one behind the other, or in turn. First as stored, then by number."""
    for order in ([*every], sorted(every, key=_natural)):
        for place, length in repeated([t.shape for t in order]):
            one, two = order[place:place + length], order[place + length:place + 2 * length]
            yield one, two
            yield two, one
    for some in (o for own in (*lists, every) for o in ([*own], sorted(own, key=_natural))):
        for width in (2, 3):
            columns = [some[k::width] for k in range(width)]
            if len(some) >= FEWEST * width and len(some) % width == 0 and all(
                    len({t.shape for t in row}) == 1 for row in zip(*columns, strict=True)):
                for k in range(width):
                    yield from ((columns[j], columns[k]) for j in (k - 1, k + 1) if 0 <= j < width)


def _natural(tensor: Tensor) -> tuple[tuple[bool, int, str], ...]:
    pieces = _NUMBER.split(tensor.key or tensor.name)
    return tuple((p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in pieces)


def _are_moments(first: Sequence[Tensor], second: Sequence[Tensor], measured: Mapping[int, Stats]) -> bool:
    """Whether the second is never negative and no mask, the first of both signs, and no square is far above."""
    squares, means = [measured[id(t)] for t in second], [measured[id(t)] for t in first]
    if any(s.low < 0 or s.nan or s.inf for s in squares) or not any(len(t.shape) > 1 for t in second):
        return False
    if not any(s.high > 0 for s in squares) or all(len(np.unique(s.sample)) <= 2 for s in squares):
        return False
    large = [m for m in means if m.size >= SIZE]
    if not large or sum(m.low < 0 < m.high for m in large) < SIGNED * len(large):
        return False
    return not any(_beyond(m, v) > BEYOND for m, v in zip(means, squares, strict=True))


def _beyond(mean: Stats, square: Stats) -> float:
    """The share of the squares, but for those that are zero or have lost digits, that the mean does not allow."""
    v, m = (s.sample.astype(np.float64) for s in (square, mean))
    whole = v >= SMALLEST_NORMAL.get(square.tensor.dtype, 0.0)
    return float((m[whole] ** 2 > BOUND * v[whole]).mean()) if len(m) == len(v) and whole.any() else 0.0


def _weights(rest: Sequence[Tensor], moments: Sequence[Tensor]) -> Sequence[Tensor]:
    """Tensors in the order of shapes of the moments, () where there are none."""
    wanted = [t.shape for t in moments]
    for order in (rest, sorted(rest, key=_natural)):
        shapes = [t.shape for t in order]
        at = next((k for k in range(len(shapes) - len(wanted) + 1) if shapes[k:k + len(wanted)] == wanted), -1)
        if at >= 0:
            return order[at:at + len(wanted)]
    return ()


def _goes_along(first: Sequence[Tensor], weights: Sequence[Tensor], measured: Mapping[int, Stats]) -> bool:
    """Whether the largest of a series is near its weight, as a copy or an average is."""
    m, w = max(zip(first, weights, strict=True), key=lambda pair: pair[0].size)
    a, b = (measured[id(t)].sample.astype(np.float64) if id(t) in measured else np.zeros(0) for t in (m, w))
    if len(a) != len(b) or not (np.isfinite(a).all() and np.isfinite(b).all() and a.std() > 0 and b.std() > 0):
        return False
    return bool(abs(np.corrcoef(a, b)[0, 1]) > ALIKE)
