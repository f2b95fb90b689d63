"""Common random numbers, keys for each row, noise of an evaluation."""
import jax, jax.numpy as jnp, equinox as eqx, optax
def roll(params, key):
    return params * jax.random.normal(key)
def evaluate(params, keys):
    return jnp.stack([roll(params, k) for k in keys]).mean()
def many(params, key):
    return [roll(p, key) for p in params]          # common random numbers on purpose
def fixed(params, x):
    noise = jax.random.normal(jax.random.PRNGKey(0), x.shape)   # fixed evaluation noise
    return jnp.mean((params * (x + noise)) ** 2)
def make(n, key):
    keys = jax.random.split(key, n)
    return [roll(1.0, keys[i]) for i in range(n)]
@jax.jit
def step(p, s, x, i):
    def loss(p):
        key = jax.random.fold_in(jax.random.PRNGKey(0), i)
        noise = jax.random.normal(key, x.shape)
        return jnp.mean((p * (x + noise)) ** 2)
    g = jax.grad(loss)(p)
    u, s = tx.update(g, s)
    return optax.apply_updates(p, u), s
tx = optax.adam(1e-3)
def main(data, val):
    p = jnp.ones(3); s = tx.init(p)
    for i, x in enumerate(data):
        p, s = step(p, s, x, i)
        if i % 10 == 0:
            print(fixed(p, val))
    return p
