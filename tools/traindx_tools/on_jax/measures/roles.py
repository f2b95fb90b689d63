"""Which calls of jitted functions train, which evaluate, and which of their arguments are the batch.

A function that is differentiated trains; an argument whose arrays come back in its outputs (new parameters, or
gradients of them) is its state. Another function that takes an argument of the same arrays and is not differentiated
evaluates. What is left of the arguments and has one leading dimension is the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Signature = tuple[tuple[tuple[int, ...], str], ...]
FEWEST_ROWS = 4
MOST_BYTES = 2**24
"""Bytes of one array that are copied to the host."""


def signature(value: Any) -> Signature:
    """Shapes and dtypes of the arrays of an argument, in order; numbers and static values are left out."""
    import jax

    return tuple((tuple(x.shape), str(x.dtype)) for x in jax.tree_util.tree_leaves(value)
                 if hasattr(x, "shape") and hasattr(x, "dtype"))


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments by place or name."""
    yield from ((f"argument {i}", a) for i, a in enumerate(args))
    yield from kwargs.items()


def state_in(given: Mapping[str, Signature], output: Any) -> dict[str, Signature]:
    """The arguments whose arrays the output holds one after another."""
    out = signature(output)
    found = {}
    for name, one in given.items():
        n = len(one)
        whole = n > 1 or (n == 1 and len(one[0][0]) > 1 and len(out) <= 2 * n + 1)
        if whole and any(out[k:k + n] == one for k in range(len(out) - n + 1)):
            found[name] = one
    return found


def largest(value: Any, name: str) -> tuple[str, Any] | None:
    """The largest array of several rows in an argument that is no state, with its path."""
    import jax

    leaves = [(f"{name}{jax.tree_util.keystr(path)}", leaf) for path, leaf in
              jax.tree_util.tree_flatten_with_path(value)[0]
              if hasattr(leaf, "shape") and len(leaf.shape) >= 2 and leaf.shape[0] >= FEWEST_ROWS and leaf.size]
    return max(leaves, key=lambda p: p[1].size, default=None)


def on_host(leaf: Any) -> NDArray[Any] | None:
    """The values, where that waits for nothing and costs little: an array that is there, of plain numbers."""
    if leaf.nbytes > MOST_BYTES or getattr(leaf.dtype, "kind", "") not in "iufb" or leaf.dtype.kind == "V":
        return None
    if not isinstance(leaf, np.ndarray):
        ready = getattr(leaf, "is_ready", None)
        if not getattr(leaf, "is_fully_addressable", True) or (ready is not None and not ready()):
            return None
    return np.asarray(leaf)
