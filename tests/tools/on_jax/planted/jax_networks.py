"""Train steps of flax linen and flax nnx networks with optax: healthy ones, and the same with one planted origin."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen

X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 6)), jnp.float32)
Y = jnp.asarray(np.random.default_rng(2).integers(0, 3, 8), jnp.int32)


class Block(linen.Module):
    """A layer whose normalisation is written by hand."""

    epsilon: float

    @linen.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        h = linen.Dense(16)(x)
        h = linen.Dropout(0.1, deterministic=not train)(h)
        centred = h - h.mean(axis=-1, keepdims=True)
        h = centred / jnp.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + self.epsilon)  # <- block
        return x + linen.Dense(x.shape[-1])(jax.nn.gelu(h))


class Net(linen.Module):
    """Two blocks and batch statistics."""

    epsilon: float = 1e-5

    @linen.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        for _ in range(2):
            x = Block(self.epsilon)(x, train)
        x = linen.BatchNorm(use_running_average=not train)(x)
        return linen.Dense(3)(x)


def linen_step(epsilon: float = 1e-5, zero: bool = False) -> tuple[Any, ...]:
    """A train step with dropout and batch statistics; `zero`: kernels are 0, so that variances are."""
    net = Net(epsilon)
    variables = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X)
    params = jax.tree_util.tree_map(jnp.zeros_like, variables["params"]) if zero else variables["params"]
    tx = optax.adam(1e-3)

    def step(params: Any, stats: Any, opt: Any, key: Any, x: Any, y: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            logits, changed = net.apply({"params": p, "batch_stats": stats}, x, rngs={"dropout": key},
                                        mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), changed["batch_stats"]

        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), stats, opt, loss

    return jax.jit(step), params, variables["batch_stats"], tx.init(params), jax.random.key(2), X, Y


def nnx_step(broken: bool = False) -> tuple[Any, ...]:
    """The functional form of an nnx train step."""
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.a = nnx.Linear(6, 16, rngs=rngs)
            self.b = nnx.Linear(16, 3, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            h = jax.nn.relu(self.a(x))
            if broken:
                h = h / (h * 0.0)  # <- nnx
            return self.b(h)

    graph, state = nnx.split(Model(nnx.Rngs(0)))

    def step(state: Any, x: Any, y: Any) -> Any:
        def loss_fn(s: Any) -> Any:
            logits = nnx.merge(graph, s)(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, state, grads), loss

    return jax.jit(step), state, X, Y
