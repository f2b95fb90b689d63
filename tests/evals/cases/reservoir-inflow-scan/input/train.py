"""Reservoir inflow forecast: a small recurrent cell unrolled with lax.scan."""
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
import optax

HIDDEN, FEATS, LOOKBACK = 32, 5, 48


def catchment_series(n_days, seed=4):
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.4, 6.0, n_days)
    snow = np.clip(20 * np.cos(2 * np.pi * np.arange(n_days) / 365) + rng.normal(0, 2, n_days), 0, None)
    flow = np.zeros(n_days)
    for t in range(1, n_days):
        flow[t] = 0.85 * flow[t - 1] + 0.3 * rain[t] + 0.05 * snow[t - 1]
    feats = np.stack([rain, snow, np.roll(rain, 1), np.sin(np.arange(n_days) / 58), np.cos(np.arange(n_days) / 58)], 1)
    return (feats / feats.std(0)).astype(np.float32), (flow / flow.std()).astype(np.float32)


def init_params(key, dtype=jnp.float32):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "wx": jax.random.normal(k1, (FEATS, HIDDEN), dtype) * 0.3,
        "wh": jax.random.normal(k2, (HIDDEN, HIDDEN), dtype) * 0.1,
        "b": jnp.zeros((HIDDEN,), dtype),
        "out": jax.random.normal(k3, (HIDDEN,), dtype) * 0.1,
    }


def cell(params, h, x):
    h = 0.7 * h + 0.3 * jnp.tanh(x @ params["wx"] + h @ params["wh"] + params["b"])
    return h, h


def forecast(params, window, compute_dtype=jnp.bfloat16):
    h0 = jnp.zeros((window.shape[0], HIDDEN), compute_dtype)
    xs = jnp.swapaxes(window, 0, 1).astype(compute_dtype)
    h, _ = jax.lax.scan(partial(cell, params), h0, xs)
    return (h @ params["out"]).astype(jnp.float32)


def loss_fn(params, window, target):
    return jnp.mean((forecast(params, window) - target) ** 2)


def main():
    feats, flow = catchment_series(900)
    windows = np.stack([feats[i:i + LOOKBACK] for i in range(len(feats) - LOOKBACK - 1)])
    targets = flow[LOOKBACK + 1:]
    print("windows", windows.shape, "targets", targets.shape)
    params = init_params(jax.random.key(0))
    print("parameters:", sum(p.size for p in jax.tree.leaves(params)))
    tx = optax.adamw(2e-3)
    opt_state = tx.init(params)

    @jax.jit
    def step(params, opt_state, w, t):
        loss, grads = jax.value_and_grad(loss_fn)(params, w, t)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    rng = np.random.default_rng(0)
    for it in range(200):
        idx = rng.integers(0, len(windows), 64)
        params, opt_state, loss = step(params, opt_state, windows[idx], targets[idx])
        if it % 20 == 0:
            print(f"it {it:4d}  mse {loss:.4f}")


if __name__ == "__main__":
    main()
