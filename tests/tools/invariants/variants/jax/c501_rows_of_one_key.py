"""Rows that are drawn with one key, and noise of a constant in each step."""
import jax, jax.numpy as jnp, equinox as eqx, optax
class Net(eqx.Module):
    lin: eqx.nn.Linear
    def __init__(self, key):
        self.lin = eqx.nn.Linear(3, 3, key=key)
def make(n, key):
    return [Net(key) for _ in range(n)]  # FAULT C501
def roll(params, key):
    return params * jax.random.normal(key)
def evaluate(params, seed):
    key = jax.random.PRNGKey(seed)
    return sum(roll(params, key) for _ in range(10)) / 10  # FAULT C501
@jax.jit
def step(p, s, x):
    def loss(p):
        noise = jax.random.normal(jax.random.PRNGKey(0), x.shape)  # FAULT C501
        return jnp.mean((p * (x + noise)) ** 2)
    g = jax.grad(loss)(p)
    u, s = tx.update(g, s)
    return optax.apply_updates(p, u), s
tx = optax.adam(1e-3)
def main(data):
    p = jnp.ones(3); s = tx.init(p)
    for x in data:
        p, s = step(p, s, x)
    return p
