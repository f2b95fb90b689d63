"""Deep ensemble for battery capacity after N cycles; the spread of the members says where the model does not know."""
import logging
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname)s] %(message)s")
log = logging.getLogger(__name__)
MEMBERS = 6


def cells(n, rng, low=0.0, high=1.0):
    x = rng.uniform(low, high, (n, 3)).astype(np.float32)  # cycles, temperature, depth of discharge
    y = 1 - 0.3 * x[:, 0] ** 0.7 - 0.15 * x[:, 0] * x[:, 1] - 0.1 * np.sin(4 * x[:, 2]) * x[:, 0]
    return x, (y + 0.01 * rng.standard_normal(n)).astype(np.float32)


def dense(key, i, o):
    return {"w": jax.random.normal(key, (i, o)) / jnp.sqrt(i), "b": jnp.zeros(o)}


def init_member(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {"a": dense(k1, 3, 32), "b": dense(k2, 32, 32), "c": dense(k3, 32, 1)}


def forward(p, x):
    h = jnp.tanh(x @ p["a"]["w"] * 3 + p["a"]["b"])
    h = jnp.tanh(h @ p["b"]["w"] + p["b"]["b"])
    return (h @ p["c"]["w"] + p["c"]["b"])[:, 0]


def loss_fn(p, x, y):
    return jnp.mean((forward(p, x) - y) ** 2)


def main():
    rng = np.random.default_rng(9)
    x, y = cells(1500, rng)
    xv, yv = cells(300, rng)
    xo, _ = cells(300, rng, 1.5, 3.0)  # outside of what was measured
    key = jax.random.key(9)
    params = jax.vmap(lambda _: init_member(key))(jnp.arange(MEMBERS))
    tx = optax.adam(3e-3)
    state = jax.vmap(tx.init)(params)

    @jax.jit
    def step(params, state, x, y):
        def one(p, s):
            loss, g = jax.value_and_grad(loss_fn)(p, x, y)
            u, s = tx.update(g, s, p)
            return optax.apply_updates(p, u), s, loss

        return jax.vmap(one)(params, state)

    predict = jax.jit(jax.vmap(forward, in_axes=(0, None)))
    for epoch in range(40):
        perm = rng.permutation(len(x))
        for i in range(0, len(x), 100):
            b = perm[i:i + 100]
            params, state, loss = step(params, state, x[b], y[b])
        if epoch % 5 == 4:
            inside, outside = predict(params, xv), predict(params, xo)
            rmse = float(jnp.sqrt(jnp.mean((inside.mean(0) - yv) ** 2)))
            log.info("epoch %2d loss %.6f ensemble rmse %.4f spread inside %.5f outside %.5f", epoch, float(loss.mean()), rmse,
                     float(inside.std(0).mean()), float(outside.std(0).mean()))


if __name__ == "__main__":
    main()
