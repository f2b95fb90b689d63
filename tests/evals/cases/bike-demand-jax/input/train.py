"""Hourly bike-share demand with a small MLP, written directly in JAX + optax."""
import sys
import jax
import jax.numpy as jnp
import numpy as np
import optax


def hours(n, seed):
    rng = np.random.default_rng(seed)
    hour, temp, rain, weekend = rng.integers(0, 24, n), rng.normal(15, 7, n), rng.random(n) < 0.15, rng.random(n) < 2 / 7
    peak = np.exp(-((hour - 8) ** 2) / 4) + np.exp(-((hour - 17) ** 2) / 6)
    demand = 50 + 300 * peak * (1 - 0.6 * weekend) + 4 * (temp - 15) - 60 * rain + rng.normal(0, 15, n)
    x = np.stack([np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12), np.sin(hour * np.pi / 6),
                  np.cos(hour * np.pi / 6), (temp - 15) / 7, rain, weekend], 1)
    return x.astype(np.float32), ((demand - 130) / 110).astype(np.float32)


def init(key, sizes=(7, 64, 64, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (i, o)) * jnp.sqrt(2 / i), "b": jnp.zeros(o)}
            for k, i, o in zip(keys, sizes[:-1], sizes[1:])]


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def objective(params, x, y):
    err = predict(params, x) - y
    return jnp.where(jnp.abs(err) < 1.0, 0.5 * err ** 2, jnp.abs(err) - 0.5).mean()


@jax.jit
def update(params, state, x, y):
    value, g = jax.value_and_grad(objective)(params, x, y)
    delta, state = tx.update(g, state, params)
    return optax.apply_updates(params, delta), state, value


def r_squared(params, x, y):
    p = np.asarray(predict(params, x)).ravel()
    return 1 - ((p - y) ** 2).sum() / ((y - y.mean()) ** 2).sum(), p.std()


x, y = hours(4000, 0)
xt, yt = hours(1000, 1)
params = init(jax.random.key(1))
tx = optax.adamw(2e-3, weight_decay=1e-4)
state = tx.init(params)
rng = np.random.default_rng(1)
for step in range(1, 1501):
    i = rng.integers(0, len(x), 128)
    params, state, value = update(params, state, x[i], y[i])
    if step % 250 == 0:
        r2, spread = r_squared(params, xt, yt)
        sys.stdout.write(f"step {step:5d}\thuber {float(value):.4f}\ttest R2 {r2:+.3f}\tspread of predictions {spread:.3f} (targets {yt.std():.3f})\n")
