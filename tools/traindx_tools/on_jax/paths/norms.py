"""`gradient_norms`: the L2 norm of each leaf of a tree of gradients, by its path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from traindx_tools.errors import BadUsage
from traindx_tools.on_jax.nonfinite.values import is_inexact


def gradient_norms(grads: Any) -> dict[str, float]:
    """The L2 norm of each floating-point leaf, in float32: `{"['enc']['w']": 0.13, ...}`, in the order of the tree.

    One reduction on the device and one transfer, whatever the number of leaves. Call it outside of jit, with what
    `jax.grad` returned. Raises BadUsage for a tree without floating-point arrays and for values that are traced.
    """
    import jax

    from traindx_tools.on_jax import internals

    leaves = [(jax.tree_util.keystr(path) or "value", leaf)
              for path, leaf in jax.tree_util.tree_flatten_with_path(grads)[0] if is_inexact(leaf)]
    if not leaves:
        raise BadUsage(f"expected a tree of gradients as jax.grad returns it, got {type(grads).__name__} without "
                       "floating-point arrays")
    if any(internals.is_tracer(leaf) for _, leaf in leaves):
        raise BadUsage("gradient_norms reads values and cannot be called inside jit, grad or vmap: return the "
                       "gradients, or use on_jax.measures.report there")
    told = np.asarray(norms_of([leaf for _, leaf in leaves]))
    return {name: float(norm) for (name, _), norm in zip(leaves, told, strict=True)}


def norms_of(arrays: Sequence[Any]) -> Any:
    """The L2 norms of arrays as one array, on the device; nothing waits for it."""
    one, joined = _reductions()
    return joined([one(a) for a in arrays])  # a program for each shape: one for all arrays takes long to compile


@cache
def _reductions() -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    def norm(value: Any) -> Any:
        return jnp.sqrt(jnp.sum(jnp.square(jnp.abs(jnp.asarray(value)).astype(jnp.float32))))

    plain = getattr(jax.jit, "__wrapped__", jax.jit)
    return plain(norm), plain(jnp.stack)
