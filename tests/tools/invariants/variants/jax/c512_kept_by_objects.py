"""Traced values that an object keeps, a constant that an object's method reads, a pure function of the project."""
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

drop_rate = 0.5


class Average:
    def __init__(self):
        self.total, self.seen = 0.0, []

    def update(self, value):
        self.total += value

    def keep(self, value, name="loss"):
        self.seen.append((name, value))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(x * (1 - drop_rate))[:, 0]  # FAULT C513


net = Net()


def anneal():
    global drop_rate
    drop_rate *= 0.9


def cleared(params):
    fresh = params.at[0].set(0.0)
    return fresh


def reset(params):
    return cleared(params)


def fit(params, data, tx):
    average = Average()
    state = tx.init(params)

    def loss(p, x, y):
        error = jnp.mean((net.apply(p, x) - y) ** 2)
        average.update(error)  # FAULT C512
        return error

    @jax.jit
    def step(p, s, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        average.keep(value)  # FAULT C512
        updates, s = tx.update(grads, s)
        return optax.apply_updates(p, updates), s, value

    for x, y in data:
        anneal()
        params, state, value = step(params, state, x, y)
    reset(params)  # FAULT C509
    return params
