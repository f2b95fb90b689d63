"""optax counts updates, and the length counts epochs."""
import optax, jax, jax.numpy as jnp
def loss(p, x, y): return jnp.mean((x @ p - y) ** 2)
def fit(x, y, epochs=50, batch=32):
    sched = optax.linear_schedule(1e-3, 0.0, epochs)  # FAULT C110
    tx = optax.chain(optax.clip(1.0), optax.sgd(sched, momentum=0.9))
    p = jnp.zeros(3); s = tx.init(p)
    @jax.jit
    def step(p, s, a, b):
        l, g = jax.value_and_grad(loss)(p, a, b)
        u, s = tx.update(g, s)
        return optax.apply_updates(p, u), s, l
    for e in range(epochs):
        for i in range(0, len(x), batch):
            p, s, l = step(p, s, x[i:i+batch], y[i:i+batch])
    return p
