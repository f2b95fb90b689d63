"""Pairs among the arguments of a call: an index of two columns or two rows, or two arrays of one shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_jax.measures.roles import FEWEST_ROWS, on_host
from traindx_tools.rows.host_values import hashes_of, row_matrix
from traindx_tools.rows.pairs import Ints

MOST_ROWS, MOST_SAMPLES, MOST_LEAVES = 2**15, 2**12, 64
"""Pairs of one call that are read, of more every k-th; rows that are known by their values; arrays of one argument."""


@dataclass(frozen=True, eq=False)
class ArgumentPairs:
    """Copies on the host of both sides, from these arguments of the call."""

    arguments: tuple[str, ...]
    path: str
    ids: bool
    left: NDArray[Any]
    right: NDArray[Any]

    def numbers(self) -> tuple[Ints, Ints]:
        """The ids of both sides, or a number of each row by its values."""
        if self.ids:
            return self.left.astype(np.int64), self.right.astype(np.int64)
        return _hashed(self.left), _hashed(self.right)


def _hashed(values: NDArray[Any]) -> Ints:
    return np.array(hashes_of(row_matrix(values)[0]), np.int64)


def argument_pairs(given: Mapping[str, Any], turn: int, *, rows: bool) -> list[ArgumentPairs]:
    """The pairs of these arguments. `rows`: two arrays of one shape are looked at as well."""
    leaves = [(name, path, leaf) for name, value in given.items() for path, leaf in _leaves(value, name)]
    found = list(_indices(leaves, turn))
    return found or (list(_of_two(leaves, turn)) if rows else [])


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    import jax

    for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0][:MOST_LEAVES]:
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype") and len(leaf.shape) and leaf.size:
            yield f"{name}{jax.tree_util.keystr(path)}", leaf


def _is_index(leaf: Any) -> bool:
    return getattr(leaf.dtype, "kind", "") in "iu" and leaf.dtype.itemsize >= 4


def _indices(leaves: list[tuple[str, str, Any]], turn: int) -> Iterator[ArgumentPairs]:
    for name, path, leaf in leaves:
        if _is_index(leaf) and len(leaf.shape) == 2 and 2 in leaf.shape and max(leaf.shape) >= FEWEST_ROWS:
            values = on_host(leaf)
            if values is not None:
                columns = values if values.shape[1] == 2 else values.T
                yield ArgumentPairs((name,), path, True, *_thinned(columns[:, 0], columns[:, 1], turn))


def _of_two(leaves: list[tuple[str, str, Any]], turn: int) -> Iterator[ArgumentPairs]:
    able = [x for x in leaves if x[2].shape[0] >= FEWEST_ROWS and (len(x[2].shape) >= 2 or _is_index(x[2]))]
    largest = max((x[2].size for x in able), default=0)
    alike = [x for x in able if x[2].size == largest]
    if len(alike) != 2 or alike[0][2].shape != alike[1][2].shape or alike[0][2].dtype != alike[1][2].dtype:
        return
    (one, path, a), (other, _, b) = alike
    left, right = on_host(a), on_host(b)
    if left is not None and right is not None:
        ids = left.ndim == 1
        sides = _thinned(left, right, turn) if ids else (left[:MOST_SAMPLES].copy(), right[:MOST_SAMPLES].copy())
        yield ArgumentPairs((one, other), path, ids, *sides)


def _thinned(left: NDArray[Any], right: NDArray[Any], turn: int) -> tuple[NDArray[Any], NDArray[Any]]:
    stride = -(-len(left) // MOST_ROWS)
    return left[turn % stride::stride].copy(), right[turn % stride::stride].copy()
