"""Keys that are copies of one key: read by their bytes, along the axis that a `vmap` maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.keys.course import is_key
from traindx_tools.on_jax.nonfinite.values import is_inexact

MOST_NUMBERS = 2**12
"""Numbers of an array of keys that are read."""
MOST_ELEMENTS = 2**20
"""Elements of an output that are compared."""


def copies(keys: Any, axis: int = 0) -> int:
    """How many copies of one key an array of keys holds along an axis; 0 where they differ or are no keys."""
    rows = _rows(keys, axis)
    if rows is None or len(rows) < 2 or not bool((rows == rows[:1]).all()):
        return 0
    return len(rows)


def _rows(keys: Any, axis: int) -> Any:
    import jax

    if not hasattr(keys, "dtype") or internals.is_tracer(keys) or getattr(keys, "is_deleted", bool)():
        return None
    typed = is_key(keys)
    raw = str(keys.dtype) == "uint32" and keys.ndim == 2 and keys.shape[-1] == 2 and axis in (0, -2)
    if not (typed and keys.ndim == 1) and not raw:
        return None
    if keys.size > MOST_NUMBERS or not getattr(keys, "is_fully_addressable", True):
        return None
    return np.asarray(jax.random.key_data(keys) if typed else keys)


def members_alike(output: Any) -> bool:
    """Whether all members of an output, along its first axis, are the same numbers, and not a constant throughout."""
    import jax

    telling = False
    for leaf in jax.tree_util.tree_leaves(output):
        if not is_inexact(leaf) or not getattr(leaf, "ndim", 0):
            continue
        if leaf.size > MOST_ELEMENTS or getattr(leaf, "is_deleted", bool)():
            continue
        rows = np.asarray(leaf).reshape(len(leaf), -1)
        if not bool((rows == rows[:1]).all()):
            return False
        telling = telling or bool((rows[0] != rows[0, :1]).any()) or rows.shape[1] == 1
    return telling
