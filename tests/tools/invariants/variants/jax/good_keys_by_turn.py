"""Keys by the size of a row, by turn and from objects that keep them; one noise for a population, on purpose."""
import jax, jax.numpy as jnp, optax, equinox as eqx
from functools import partial
class Pool:
    def __init__(self, seed): self.key = jax.random.PRNGKey(seed)
    def draw(self):
        self.key, sub = jax.random.split(self.key)
        return sub
class Noise:
    def __init__(self, seed): self.key = jax.random.PRNGKey(seed)
    def at(self, step):
        a, b = jax.random.split(jax.random.fold_in(self.key, step))
        return a, b
def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [jax.random.normal(k, (a, b)) * 0.1 for k, a, b in zip(keys, sizes, sizes[1:])]
def init2(key, sizes):
    return [jax.random.normal(jax.random.fold_in(key, i), (a, b)) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]
def forward(p, x, key):
    for w in p: x = jnp.tanh(x @ w)
    return x * jax.random.bernoulli(key, 0.9, x.shape)
def loss(p, x, key):
    return jnp.mean(jax.vmap(forward, (None, 0, 0))(p, x, jax.random.split(key, len(x))) ** 2)
@jax.jit
def step(p, s, x, key):
    g = jax.grad(loss)(p, x, key)
    u, s = tx.update(g, s)
    return optax.apply_updates(p, u), s
tx = optax.adam(1e-3)
def main():
    pool, noise = Pool(0), Noise(1)
    p = init(pool.draw(), (4, 8, 4)); s = tx.init(p)
    key = pool.draw()
    n = 0
    for epoch in range(10):
        ek = jax.random.fold_in(key, epoch)
        for i in range(20):
            p, s = step(p, s, jnp.ones((5, 4)), jax.random.fold_in(ek, i))
            n += 1
            p, s = step(p, s, jnp.ones((5, 4)), jax.random.fold_in(key, n))
            p, s = step(p, s, jnp.ones((5, 4)), pool.draw())
            a, b = noise.at(n)
            p, s = step(p, s, jnp.ones((5, 4)), a)
    scores = [float(loss(p, x, key)) for x in (jnp.ones((5, 4)), jnp.zeros((5, 4)))]
    print(scores)
main()
