"""Operations that move elements about, on numpy arrays: applied to names of keys and to small known integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Move = Callable[[Mapping[str, Any], Sequence[Array]], Array]


def _broadcast(params: Mapping[str, Any], given: Sequence[Array]) -> Array:
    shape, dims = tuple(params["shape"]), tuple(params["broadcast_dimensions"])
    spread = [1] * len(shape)
    for d, size in zip(dims, given[0].shape, strict=True):
        spread[d] = size
    return np.broadcast_to(given[0].reshape(spread), shape)


def _slice(params: Mapping[str, Any], given: Sequence[Array]) -> Array:
    strides = params["strides"] or [1] * given[0].ndim
    return given[0][tuple(slice(a, b, s) for a, b, s in zip(params["start_indices"], params["limit_indices"], strides,
                                                           strict=True))]


def _dynamic_slice(params: Mapping[str, Any], given: Sequence[Array]) -> Array:
    sizes = params["slice_sizes"]
    starts = [int(np.clip(int(s), 0, n - k)) for s, n, k in zip(given[1:], given[0].shape, sizes, strict=True)]
    return given[0][tuple(slice(a, a + k) for a, k in zip(starts, sizes, strict=True))]


def _reshape(params: Mapping[str, Any], given: Sequence[Array]) -> Array:
    return given[0].reshape(tuple(params["new_sizes"]))


def _select(params: Mapping[str, Any], given: Sequence[Array]) -> Array:
    which = np.broadcast_to(given[0].astype(np.int64), given[1].shape)
    return np.choose(which, list(given[1:]))


MOVES: dict[str, Move] = {
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "reshape": _reshape,
    "squeeze": lambda p, v: np.squeeze(v[0], axis=tuple(p["dimensions"])),
    "expand_dims": lambda p, v: np.expand_dims(v[0], tuple(p["dimensions"])),
    "transpose": lambda p, v: np.transpose(v[0], tuple(p["permutation"])),
    "rev": lambda p, v: np.flip(v[0], tuple(p["dimensions"])),
    "concatenate": lambda p, v: np.concatenate(list(v), axis=p["dimension"]),
    "stack": lambda p, v: np.stack(list(v), axis=p["axis"]),
    "tile": lambda p, v: np.tile(v[0], tuple(p["reps"])),
    "copy": lambda p, v: v[0],
    "copy_p": lambda p, v: v[0],
    "device_put": lambda p, v: v[0],
    "sharding_constraint": lambda p, v: v[0],
    "stop_gradient": lambda p, v: v[0],
    "optimization_barrier": lambda p, v: v[0],
}
"""Moves that need nothing but the array itself."""

PARTING: dict[str, Callable[[Mapping[str, Any], Array], list[Array]]] = {
    "split": lambda p, v: np.split(v, np.cumsum(p["sizes"])[:-1], axis=p["axis"]),
    "unstack": lambda p, v: [np.squeeze(x, p["axis"]) for x in np.split(v, v.shape[p["axis"]], axis=p["axis"])],
}
"""Moves with several results."""

CHOOSING: dict[str, Move] = {"dynamic_slice": _dynamic_slice, "select_n": _select}
"""Moves whose places are values: the first (select_n) or the later inputs must be known."""

COUNTING: dict[str, Move] = {
    "add": lambda p, v: v[0] + v[1],
    "sub": lambda p, v: v[0] - v[1],
    "mul": lambda p, v: v[0] * v[1],
    "lt": lambda p, v: v[0] < v[1],
    "le": lambda p, v: v[0] <= v[1],
    "gt": lambda p, v: v[0] > v[1],
    "ge": lambda p, v: v[0] >= v[1],
    "eq": lambda p, v: np.asarray(v[0] == v[1]),
    "ne": lambda p, v: np.asarray(v[0] != v[1]),
    "max": lambda p, v: np.maximum(v[0], v[1]),
    "min": lambda p, v: np.minimum(v[0], v[1]),
    "clamp": lambda p, v: np.clip(v[1], v[0], v[2]),
    "convert_element_type": lambda p, v: v[0].astype(np.dtype(p["new_dtype"])),
    "iota": lambda p, v: np.broadcast_to(
        np.arange(p["shape"][p["dimension"]]).reshape([-1 if i == p["dimension"] else 1
                                                       for i in range(len(p["shape"]))]), p["shape"]),
}
"""Arithmetic of small integers, as indices need it."""
