"""The terms of a loss: how large each is, how hard it pulls, and whether two pull apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def loss_terms(terms: Mapping[str, Any]) -> dict[str, Any]:
    """`loss/<term>` for each scalar term as it enters the sum, its weight included."""
    import jax.numpy as jnp

    return {f"loss/{name}": jnp.asarray(value, jnp.float32).mean() for name, value in terms.items()}


def term_gradients(terms: Callable[[Any], Mapping[str, Any]], params: Any) -> dict[str, Any]:
    """`grad_norm/<term>` of each term and `cosine/<a>|<b>` of each pair, for the same parameters.

    `terms` maps parameters to the weighted scalar terms. A cosine near -1 says that two terms undo each other; 0 is
    given where one of them has no gradient. Costs one forward pass and a backward pass a term: use it under the
    condition of an interval, not in every step.
    """
    import jax
    import jax.numpy as jnp

    values, pull = jax.vjp(lambda p: dict(terms(p)), params)
    found: dict[str, Any] = {}
    flat: dict[str, Any] = {}
    for name in sorted(values):
        weights = {k: jnp.ones_like(v) if k == name else jnp.zeros_like(v) for k, v in values.items()}
        leaves = jax.tree_util.tree_leaves(pull(weights)[0])
        flat[name] = jnp.concatenate([leaf.reshape(-1).astype(jnp.float32) for leaf in leaves if leaf.size])
        found[f"grad_norm/{name}"] = _norm(flat[name])
    names = sorted(flat)
    for i, one in enumerate(names):
        for other in names[i + 1:]:
            length = found[f"grad_norm/{one}"] * found[f"grad_norm/{other}"]
            cosine = jnp.vdot(flat[one], flat[other]) / jnp.where(length > 0, length, 1.0)
            found[f"cosine/{one}|{other}"] = cosine
    return found


def _norm(values: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sqrt(jnp.vdot(values, values))
