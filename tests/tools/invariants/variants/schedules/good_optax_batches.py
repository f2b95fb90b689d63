"""All batches, and one update an epoch."""
import optax, jax, jax.numpy as jnp
def loss(p, x, y): return jnp.mean((x @ p - y) ** 2)
def fit(x, y, epochs=50, batch=32):
    n = len(x) // batch
    sched = optax.linear_schedule(1e-3, 0.0, epochs * n)
    tx = optax.sgd(sched, momentum=0.9)
    p = jnp.zeros(3); s = tx.init(p)
    @jax.jit
    def step(p, s, a, b):
        l, g = jax.value_and_grad(loss)(p, a, b)
        u, s = tx.update(g, s)
        return optax.apply_updates(p, u), s, l
    def full(p): return loss(p, x, y)
    for e in range(epochs):
        for i in range(n):
            p, s, l = step(p, s, x[i*batch:(i+1)*batch], y[i*batch:(i+1)*batch])
        # full batch runs per epoch: one update for each
    lr = optax.cosine_decay_schedule(1e-3, epochs)
    tx2 = optax.adam(lr)
    s2 = tx2.init(p)
    for e in range(epochs):
        g = jax.grad(full)(p)
        u, s2 = tx2.update(g, s2)
        p = optax.apply_updates(p, u)
    return p
