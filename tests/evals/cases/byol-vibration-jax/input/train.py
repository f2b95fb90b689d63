import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

from signals import MACHINES, vibrations, view

DIM, STEPS = 32, 1500


def dense(key, i, o):
    return {"w": jax.random.normal(key, (i, o)) * jnp.sqrt(2.0 / i), "b": jnp.zeros(o)}


def mlp_init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [dense(k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:])]


def mlp(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def unit(v):
    return v * jax.lax.rsqrt(jnp.sum(v * v, -1, keepdims=True) + 1e-8)


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(1e-4), optax.scale(-1e-3))


@jax.jit
def step(online, target, opt_state, key, x):
    ka, kb = jax.random.split(key)
    va, vb = view(ka, x), view(kb, x)

    def objective(p):
        def side(a, b):
            pred = unit(mlp(p["head"], mlp(p["body"], a)))
            goal = jax.lax.stop_gradient(unit(mlp(target, b)))
            return 2 - 2 * jnp.mean(jnp.sum(pred * goal, -1))

        return 0.5 * (side(va, vb) + side(vb, va))

    loss, grads = jax.value_and_grad(objective)(online)
    updates, opt_state = tx.update(grads, opt_state, online)
    online = optax.apply_updates(online, updates)
    target = optax.incremental_update(online["body"], target, 0.01)
    return online, target, opt_state, loss, optax.global_norm(grads)


def probe(body, xa, ya, xb, yb):
    f = lambda x: np.asarray(unit(mlp(body, jnp.asarray(x))))
    a, b = f(xa), f(xb)
    centres = np.stack([a[ya == k].mean(0) for k in range(MACHINES)])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    return float(((b @ centres.T).argmax(1) == yb).mean()), float(b.std(0).mean())


def main():
    key = jax.random.key(8)
    key, k1, k2 = jax.random.split(key, 3)
    x, y = vibrations(3000, 1)
    xt, yt = vibrations(500, 2)
    online = {"body": mlp_init(k1, [24, 64, 64, DIM]), "head": mlp_init(k2, [DIM, 64, DIM])}
    target = jax.tree.map(jnp.copy, online["body"])
    opt_state = tx.init(online)
    rng = np.random.default_rng(3)
    for it in range(1, STEPS + 1):
        key, sub = jax.random.split(key)
        batch = x[rng.integers(0, len(x), 128)]
        online, target, opt_state, loss, gn = step(online, target, opt_state, sub, batch)
        if it % 100 == 0 or it == 1:
            acc, spread = probe(online["body"], x[:500], y[:500], xt, yt)
            print(json.dumps({"it": it, "byol": round(float(loss), 4), "gn": round(float(gn), 4), "centroid_acc": acc, "spread": round(spread, 4)}))


if __name__ == "__main__":
    main()
