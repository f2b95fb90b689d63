"""One key for the layers of a list, the rows of a map, all steps of an epoch, and all calls of an object."""
import jax, jax.numpy as jnp, optax, equinox as eqx
def make(key, widths):
    layers = [eqx.nn.Linear(a, b, key=key) for a, b in zip(widths[:-1], widths[1:])]  # FAULT C501
    return layers
class Keys:
    def __init__(self, seed):
        self.state = jax.random.key(seed)
    def next(self):
        new, out = jax.random.split(self.state, 2)  # FAULT C501
        return out
def row(w, x, rng):
    return jnp.sum(w * (x + jax.random.normal(rng, x.shape)))
@jax.value_and_grad
def loss(w, xs, rng):
    f = jax.vmap(row, in_axes=(None, 0, None))
    return jnp.mean(f(w, xs, rng) ** 2)  # FAULT C501
@jax.jit
def step(w, s, xs, rng):
    l, g = loss(w, xs, rng)
    u, s = tx.update(g, s)
    return optax.apply_updates(w, u), s
tx = optax.adam(1e-3)
def main():
    keys = Keys(0); w = jnp.ones(3); s = tx.init(w); root = jax.random.key(3)
    for epoch in range(5):
        k = jax.random.fold_in(root, epoch)
        for b in range(100):
            w, s = step(w, s, jnp.ones((4, 3)), k)  # FAULT C501
            w, s = step(w, s, jnp.ones((4, 3)), keys.next())
main()
