"""What activations look like: their size, dead and saturated shares, and whether samples can be told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SATURATED = 0.99
"""Magnitude from which tanh or a sigmoid's output in 0..1 hardly passes a gradient (1 - 0.99**2 is 0.02)."""


def activations(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Of each array (samples on its first axis): five float32 scalars under `activation/<name>/...`.

    `rms`; `largest` magnitude; `zero_share`: values that are exactly 0; `dead_share`: units (last axis) that are 0 in
    the whole batch; `saturated_share`: values of at least 0.99, for outputs bounded by 1; `sample_spread`: the part
    of the variance that lies between samples, 0 where all of them give the same.
    """
    import jax.numpy as jnp

    found: dict[str, Any] = {}
    for name, array in arrays.items():
        x = array.astype(jnp.float32)
        zero = x == 0
        rest = tuple(range(x.ndim - 1))
        variance = x.var()
        told = {"rms": jnp.sqrt((x * x).mean()), "largest": jnp.abs(x).max(), "zero_share": zero.mean(),
                "dead_share": zero.all(axis=rest).mean() if x.ndim > 1 else zero.mean(),
                "saturated_share": (jnp.abs(x) >= SATURATED).mean(),
                "sample_spread": x.var(axis=0).mean() / jnp.where(variance > 0, variance, 1.0) if x.ndim else 0.0}
        found |= {f"activation/{name}/{k}": jnp.asarray(v, jnp.float32) for k, v in told.items()}
    return found
