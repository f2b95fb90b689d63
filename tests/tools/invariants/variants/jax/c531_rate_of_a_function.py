"""The rate of a step is a Python float of a function of its own, and the step is compiled for each of them."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

STEPS, WARMUP = 5000, 200


def rate_at(step):
    if step < WARMUP:
        return 1e-3 * (step + 1) / WARMUP
    return 5e-4 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def loss_fn(net, x, y):
    return jnp.mean((jax.vmap(net)(x) - y) ** 2)


def make_step(direction):
    @eqx.filter_jit  # FAULT C531
    def step(net, state, x, y, rate):
        loss, grads = eqx.filter_value_and_grad(loss_fn)(net, x, y)
        updates, state = direction.update(grads, state)
        updates = jax.tree.map(lambda u: -rate * u, updates)
        return eqx.apply_updates(net, updates), state, loss

    return step


def train(net, batches):
    direction = optax.scale_by_adam()
    state = direction.init(eqx.filter(net, eqx.is_array))
    step = make_step(direction)
    for i in range(STEPS):
        x, y = next(batches)
        net, state, loss = step(net, state, x, y, rate_at(i))
    return net, loss
