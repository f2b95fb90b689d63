"""Arrays of one object that the program fills, and that hold the same rows: a state and its next state.

They are two arrays with their own memory, both change between two looks, and at both looks every row of the one is that
of the other. What is never written to (a dataset whose target is its input) says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from traindx_tools.on_variables.look import Place
from traindx_tools.on_variables.stored import address, checksum

LEAST_ROWS, DISTINCT = 16, 8
"""Rows of an array, and different rows of it, below which being equal says nothing."""
MOST_BYTES = 2**26
MOST_OF_ONE = 8
"""Arrays of one object and shape that are compared."""
_Kind = tuple[str, str, str, tuple[int, ...], str]


@dataclass(frozen=True)
class Equal:
    """Two such arrays."""

    one: Place
    other: Place
    rows: int
    distinct: int
    first_step: int
    step: int
    owner: tuple[str, str] | None = None
    """File and name of the class whose attributes they are."""


class EqualArrays:
    """Compares the arrays of each object, look by look."""

    def __init__(self) -> None:
        self._before: dict[Place, tuple[int, int]] = {}
        self._equal: set[tuple[Place, Place]] = set()

    def look(self, step: int, arrays: Sequence[tuple[Place, Any]],
             owners: Mapping[Place, tuple[str, str]] = MappingProxyType({})) -> Iterator[Equal]:
        """Pairs that changed since the last look and were equal then and now."""
        groups: dict[_Kind, list[tuple[Place, Any]]] = {}
        for place, array in arrays:
            file, function, path = place
            parent, dot, _ = path.rpartition(".")
            if dot and getattr(array, "ndim", 0) in (1, 2) and hasattr(array, "dtype") and len(array) >= LEAST_ROWS:
                kind = (file, function, parent, tuple(array.shape), str(array.dtype))
                groups.setdefault(kind, []).append((place, array))
        sums = {place: (step, checksum(a)) for group in groups.values() for place, a in group[:MOST_OF_ONE]}
        equal = set()
        for group in groups.values():
            for (one, a), (other, b) in combinations(group[:MOST_OF_ONE], 2):
                if sums[one][1] != sums[other][1] or address(a) == address(b) or not _same(a, b):
                    continue
                equal.add((one, other))
                was = self._before.get(one)
                if (one, other) in self._equal and was is not None and was[1] != sums[one][1]:
                    distinct = len(np.unique(np.asarray(a)[:4096], axis=0))
                    if distinct >= DISTINCT:
                        yield Equal(one, other, len(a), distinct, was[0], step, owners.get(one))
        self._before, self._equal = sums, equal


def _same(a: Any, b: Any) -> bool:
    return bool(a.nbytes <= MOST_BYTES and np.array_equal(np.asarray(a), np.asarray(b)))
