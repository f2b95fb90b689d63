"""Which codes of a codebook a batch uses."""

from __future__ import annotations

from typing import Any


def codes(indices: Any, size: int, name: str = "") -> dict[str, Any]:
    """Perplexity and number of the codes in use, as float32 scalars; `indices` are integers of any shape.

    Indices outside 0..size-1 (padding) are not counted. Perplexity is exp of the entropy in nats of the shares
    (van den Oord et al. 2017): `size` where all codes are used alike, 1 where one is. `name` tells several codebooks
    apart.
    """
    import jax.numpy as jnp

    flat = indices.reshape(-1)
    inside = (flat >= 0) & (flat < size)
    counts = jnp.zeros(size, jnp.float32).at[jnp.where(inside, flat, 0)].add(inside.astype(jnp.float32))
    share = counts / jnp.maximum(counts.sum(), 1.0)
    entropy = -(share * jnp.log(jnp.where(share > 0, share, 1.0))).sum()
    found = {"codebook_perplexity": jnp.exp(entropy), "codebook_used": (counts > 0).sum().astype(jnp.float32),
             "codebook_size": jnp.float32(size)}
    return {f"{k}/{name}" if name else k: v for k, v in found.items()}
