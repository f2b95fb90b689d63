"""Adsorption energy from a 20-dim descriptor; gradients of 8 micro-batches make one update."""
import argparse
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax


def surface(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 20)).astype(np.float32)
    w = np.random.default_rng(77).standard_normal((20, 6)) / 4
    h = x @ w
    y = np.sin(2 * h[:, 0]) + h[:, 1] * h[:, 2] + np.abs(h[:, 3]) - 0.5 * h[:, 4] ** 2 + 0.35 * rng.standard_normal(n)
    return x, y.astype(np.float32)


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (i, o)) * (2 / i) ** 0.5, "b": jnp.zeros(o)} for k, i, o in zip(keys, sizes, sizes[1:])]


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def mse(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--epochs", type=int, default=40)
    a.add_argument("--micro", type=int, default=16)
    a.add_argument("--accum", type=int, default=8)
    a.add_argument("--peak", type=float, default=0.02)
    a = a.parse_args()
    x, y = surface(4096, 1)
    xv, yv = surface(1024, 2)
    batches = len(x) // a.micro
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0, peak_value=a.peak, warmup_steps=2 * batches, decay_steps=a.epochs * batches, end_value=a.peak / 100)
    tx = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule)), every_k_schedule=a.accum)
    params = init(jax.random.key(3), (20, 96, 96, 1))
    state = tx.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(mse)(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    rng = np.random.default_rng(0)
    print(json.dumps({"micro_batches_per_epoch": batches, "accumulate": a.accum, "epochs": a.epochs}))
    for epoch in range(a.epochs):
        order = rng.permutation(len(x))
        total = 0.0
        for i in range(batches):
            b = order[i * a.micro:(i + 1) * a.micro]
            params, state, loss = step(params, state, x[b], y[b])
            total += float(loss)
        if epoch % 2 == 1 or epoch == 0:
            lr = float(schedule(state.gradient_step))
            print(json.dumps({"epoch": epoch, "loss": round(total / batches, 4), "val": round(float(mse(params, xv, yv)), 4),
                              "updates": int(state.gradient_step), "lr": round(lr, 6)}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
