"""How much memory a step's arrays take: known from their types when the step is traced."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MIB = 2**20


def held(trees: Mapping[str, Any]) -> dict[str, Any]:
    """`memory/<name>` in MiB of each tree of arrays (parameters, optimizer state, a carry): constants of the trace.

    What the whole process holds (`memory`, by `jax.live_arrays`, and `memory/device` where the backend counts it) is
    added to each report on the host.
    """
    import jax
    import jax.numpy as jnp

    return {f"memory/{name}": jnp.float32(sum(map(_bytes, jax.tree_util.tree_leaves(tree))) / MIB)
            for name, tree in trees.items()}


def _bytes(leaf: Any) -> int:
    shape, dtype = getattr(leaf, "shape", ()), getattr(leaf, "dtype", None)
    return math.prod(shape) * int(getattr(dtype, "itemsize", 4))


def in_process() -> dict[str, float]:
    """MiB of the arrays that live in this process, and of the device where its backend tells. Never raises."""
    import jax

    live: Any = jax.live_arrays
    found = {"memory": sum(a.nbytes for a in live() if not a.is_deleted()) / MIB}
    try:
        told = jax.local_devices()[0].memory_stats() or {}
    except (RuntimeError, NotImplementedError):  # a backend that does not count
        return found
    if "bytes_in_use" in told:
        found["memory/device"] = told["bytes_in_use"] / MIB
    return found
