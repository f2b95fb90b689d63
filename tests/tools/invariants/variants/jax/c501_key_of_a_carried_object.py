"""A scan that hands its state on with `_replace`, an epoch that splits a key it never renews, a partial as a body."""
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

tx = optax.adam(1e-3)


class Held(NamedTuple):
    w: Any
    s: Any
    noise: Any


def cost(w, x, key):
    return jnp.mean((x + jax.random.normal(key, x.shape)) @ w)


def turn(held, x):
    _, now = jax.random.split(held.noise)  # FAULT C501
    u, s = tx.update(jax.grad(cost)(held.w, x, now), held.s)
    return held._replace(w=optax.apply_updates(held.w, u), s=s), None


def draw(xs, rate, carry, i):
    w, key = carry
    at = jax.random.randint(key, (8,), 0, 100)  # FAULT C501
    return (w - rate * jax.grad(lambda w: (xs[at] @ w).sum())(w), key), i


def main(xs):
    w = jnp.ones((3, 1))
    held, _ = jax.lax.scan(turn, Held(w, tx.init(w), jax.random.key(0)), xs)
    (w, _), _ = jax.lax.scan(partial(draw, xs, 1e-2), (held.w, jax.random.key(1)), jnp.arange(100))
    key = jax.random.key(2)
    for epoch in range(20):
        first, second = jax.random.split(key)  # FAULT C501
        for x, k in zip(xs, jax.random.split(second, 100)):
            w = w - 1e-3 * jax.grad(cost)(w, x, k)
    return w


main(jnp.ones((100, 4, 3)))
