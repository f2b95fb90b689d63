"""Vectors that are kept as a quotient: the sum of what was assigned to each, and how many there were.

A codebook that is a moving average stands in a file as three tensors, whatever they are called: the codes, a count for
each code, and sums that are the codes times the counts. The relation itself tells which is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_weights.statistics import Stats

_PRODUCT, _ROUNDED = 2**23, 0.01
"""Values of a matrix that is compared with products of others, and by how much of its norm it may be off."""
_PAIRS = 24
"""Pairs of matrices of one shape that are tried with one vector."""
_FEWEST = 4


@dataclass(frozen=True)
class WeightedSums:
    """Codes, how often each was taken, and the products of both."""

    codes: Stats
    count: Stats
    sums: Stats

    def counts(self) -> NDArray[np.float64]:
        """How often each code was taken, in one axis."""
        return self.count.tensor.load().astype(np.float64).reshape(-1)


def weighted_sums(floats: Sequence[Stats]) -> Iterator[WeightedSums]:
    """All such triples of a part of a checkpoint; each count once."""
    matrices: dict[tuple[int, ...], list[Stats]] = {}
    for stats in floats:
        if len(stats.tensor.shape) > 1 and stats.size <= _PRODUCT and stats.rms > 0:
            matrices.setdefault(stats.tensor.shape, []).append(stats)
    several = {shape: members for shape, members in matrices.items() if len(members) > 1}
    for count in (s for s in floats if s.low >= 0 < s.high and _FEWEST <= s.size <= _PRODUCT) if several else ():
        found = _made_with(count, several)
        if found is not None:
            yield found


def _made_with(count: Stats, matrices: dict[tuple[int, ...], list[Stats]]) -> WeightedSums | None:
    """The pair of matrices of one module of which one is the other times the count."""
    own, values = count.tensor.shape, None
    home = count.name.replace("/", ".").rpartition(".")[0]
    for shape, members in matrices.items():
        last = shape[:-1] == own
        if not last and shape[1:] != own:
            continue
        near = [s for s in members if s.name.replace("/", ".").startswith(home)]
        for codes, sums in _pairs(near)[:_PAIRS]:
            values = count.tensor.load().astype(np.float64) if values is None else values
            if _is_product(codes, values[..., None] if last else values, sums):
                return WeightedSums(codes, count, sums)
    return None


def _pairs(members: Sequence[Stats]) -> list[tuple[Stats, Stats]]:
    return [(a, b) for a in members for b in members if a is not b]


def _is_product(codes: Stats, count: NDArray[np.float64], sums: Stats) -> bool:
    """Whether `sums` is `codes` times `count` but for rounding, and is not the codes themselves."""
    if float(np.abs(count - 1).max()) < _ROUNDED:
        return False
    if len(sums.row_squares) == count.size == len(codes.row_squares):  # by norms of rows, without reading them again
        made, own = codes.row_squares * count.reshape(-1)**2, sums.row_squares
        if np.linalg.norm(made - own) > 4 * _ROUNDED * np.linalg.norm(own):
            return False
    own = sums.tensor.load().astype(np.float64)
    made = codes.tensor.load().astype(np.float64) * count
    return bool(np.linalg.norm(made - own) < _ROUNDED * np.linalg.norm(own))
