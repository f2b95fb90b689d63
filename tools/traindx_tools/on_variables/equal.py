"""Arrays of one object that the program fills, and that hold the same rows: a state and its next state.

They are two arrays with their own memory, and at two looks every row of the one that was written since the look before
is that of the other. Rows that nobody wrote hold what the memory held before it was theirs, and say nothing. What is
never written to (a dataset whose target is its input) or is another array at each look says nothing either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from traindx_tools.on_variables.look import Place, is_array
from traindx_tools.on_variables.stored import Address, address

LEAST_ROWS, DISTINCT = 16, 8
"""Rows of an array, and different rows of it, below which being equal says nothing."""
MOST_BYTES, MOST_ROWS = 2**20, 4096
"""Bytes of an array, and rows of it, up to which it is compared whole; of a longer one rows at equal distances are."""
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


@dataclass(frozen=True, eq=False)
class _Seen:
    """An array at a look: where it lies, and a number for each row that was looked at."""

    step: int
    address: Address
    digests: np.ndarray


class EqualArrays:
    """Compares the arrays of each object, look by look."""

    def __init__(self) -> None:
        self._before: dict[Place, _Seen] = {}
        self._equal: set[tuple[Place, Place]] = set()

    def look(self, step: int, arrays: Sequence[tuple[Place, Any]],
             owners: Mapping[Place, tuple[str, str]] = MappingProxyType({})) -> Iterator[Equal]:
        """Pairs whose rows that were written are equal, now and at the look before."""
        groups: dict[_Kind, list[tuple[Place, Any]]] = {}
        for place, array in arrays:
            file, function, path = place
            parent, dot, _ = path.rpartition(".")
            if dot and is_array(array) and array.ndim in (1, 2) and len(array) >= LEAST_ROWS:
                kind = (file, function, parent, tuple(array.shape), str(array.dtype))
                groups.setdefault(kind, []).append((place, array))
        seen: dict[Place, _Seen] = {}
        equal = set()
        for group in (g[:MOST_OF_ONE] for g in groups.values() if len(g) > 1):
            seen.update((place, _Seen(step, address(array), _digests(array))) for place, array in group)
            for (one, _), (other, _) in combinations(group, 2):
                now = (seen[one], seen[other])
                if now[0].address == now[1].address:
                    continue
                written = self._written((one, other), now)
                rows = np.flatnonzero(written)
                alike = now[0].digests == now[1].digests
                if not alike.all() and (len(rows) < LEAST_ROWS or not alike[rows].all()):
                    continue
                equal.add((one, other))
                if (one, other) in self._equal and len(rows) >= LEAST_ROWS:
                    distinct = len(np.unique(now[0].digests[rows]))
                    if distinct >= DISTINCT:
                        yield Equal(one, other, len(rows), distinct, self._before[one].step, step, owners.get(one))
        self._before, self._equal = seen, equal

    def _written(self, places: tuple[Place, Place], now: tuple[_Seen, _Seen]) -> np.ndarray:
        """Which rows of either array were written since the look before."""
        changed = np.zeros(len(now[0].digests), bool)
        for place, seen in zip(places, now, strict=True):
            before = self._before.get(place)
            if before is None or before.address != seen.address or len(before.digests) != len(seen.digests):
                return np.zeros(len(changed), bool)
            changed |= before.digests != seen.digests
        return changed


def _step(array: Any) -> int:
    """Every how many rows one is looked at."""
    rows = max(1, min(MOST_ROWS, MOST_BYTES * len(array) // max(1, int(array.nbytes))))
    return max(1, -(-len(array) // rows))


def _digests(array: Any) -> np.ndarray:
    """A number for each row that is looked at, of its bytes; shape (rows,)."""
    some = array[::_step(array)]
    if not isinstance(some, np.ndarray):
        some = some.detach().contiguous().view(sys.modules["torch"].uint8).numpy()
        some = some.reshape(-(-len(array) // _step(array)), -1)
    rows = np.ascontiguousarray(some).reshape(len(some), -1).view(np.uint8)
    wide = rows.view(np.uint64) if rows.shape[1] % 8 == 0 else rows.astype(np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**62, wide.shape[1], np.uint64) | np.uint64(1)
    digests: np.ndarray = ((wide ^ (wide >> np.uint64(29))) * factors).sum(axis=1, dtype=np.uint64)
    return digests
