"""A population under one noise; two networks in one step; a cell of equinox for each row of a batch."""
import jax, jax.numpy as jnp, optax
class Actor:
    def __init__(self, key): self.key = key; self.p = jax.random.normal(key, (3,))
    @property
    def parts(self):
        return jax.random.split(self.key)
def es_loss(params, key):
    return jnp.sum((params - jax.random.normal(key, params.shape)) ** 2)
def population(pop, key):
    return jax.vmap(es_loss, in_axes=(0, None))(pop, key)
def train(pop, key, tx, state):
    @jax.jit
    def update(pop, state, g, d, gg):
        def d_loss(p): return jnp.mean(p ** 2)
        def g_loss(p): return jnp.mean((p - 1) ** 2)
        grads = jax.grad(d_loss)(d)
        upd, state = tx.update(grads, state)
        d = optax.apply_updates(d, upd)
        loss, grads = jax.value_and_grad(g_loss)(g)
        upd, state = tx.update(grads, state)
        g = optax.apply_updates(g, upd)
        return g, d, state
    for gen in range(100):
        key, sub = jax.random.split(key)
        fit = population(pop, sub)
        pop = pop[jnp.argsort(fit)]
    return pop


import equinox as eqx


class Reader(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, width, key):
        one, two = jax.random.split(key)
        self.cell, self.out = eqx.nn.GRUCell(2, width, key=one), eqx.nn.Linear(width, 1, key=two)

    def __call__(self, rows):
        h, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(8), rows)
        return self.out(self.cell(rows[0], h))[0]


def error(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def fit(model, x, tx, state):
    grads = eqx.filter_grad(error)(model, x, x[:, -1, 0])
    updates, state = tx.update(grads, state)
    return eqx.apply_updates(model, updates), state


fit(Reader(8, jax.random.key(0)), jnp.ones((32, 10, 2)), optax.adam(1e-3), None)
