"""A count in a closure, an iterator and a branch that only a trace comes to."""
import jax
import jax.numpy as jnp
import optax
from jax import value_and_grad


def ramp(length):
    seen = {"n": 0}

    def weight():
        seen["n"] += 1  # FAULT C512
        return min(1.0, seen["n"] / length)

    return weight


def cost(p, x):
    err = jnp.abs(x @ p)
    if jnp.max(err) > 1.0:
        return err.mean()
    return (err**2).mean()


def build(weight, tx, source):
    @jax.jit
    def step(p, s):
        x = jnp.asarray(next(source))  # FAULT C512
        value, g = value_and_grad(cost)(p, x)
        u, s = tx.update(g, s, p)
        return optax.apply_updates(p, u), s, value * weight()

    return step


def run(source):
    tx = optax.adam(1e-3)
    p = jnp.ones(3)
    s = tx.init(p)
    step = build(ramp(100), tx, source)
    for _ in range(1000):
        p, s, value = step(p, s)
    return p
