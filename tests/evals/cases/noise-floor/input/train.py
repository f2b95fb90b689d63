"""Photometric redshift toy: flax MLP on frozen random Fourier features, accumulated gradients, SGDR restarts."""
import csv
import sys
import time

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

SIGMA = 0.5          # measurement error of the targets, known from the survey
MICRO, ACCUM = 40, 4
EPOCHS, N_TRAIN, N_VAL = 12, 4800, 1200


class Photo(nn.Module):
    freqs: int = 64
    width: int = 64

    @nn.compact
    def __call__(self, x, train: bool):
        w = self.param("fourier", nn.initializers.normal(1.2), (x.shape[-1], self.freqs))
        h = x @ jax.lax.stop_gradient(w)
        h = jnp.concatenate([jnp.sin(h), jnp.cos(h)], -1)
        h = nn.relu(nn.Dense(self.width)(h))
        h = nn.Dropout(0.1, deterministic=not train)(h)
        return nn.Dense(1)(h)[:, 0]


def survey(key, n):
    kx, ke = jax.random.split(key)
    x = jax.random.uniform(kx, (n, 3), minval=-1, maxval=1)
    clean = jnp.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * jnp.cos(4 * x[:, 1])
    return x, clean + SIGMA * jax.random.normal(ke, (n,))


def main():
    key = jax.random.PRNGKey(99)
    key, k1, k2, k3 = jax.random.split(key, 4)
    x, y = survey(k1, N_TRAIN)
    xv, yv = survey(k2, N_VAL)
    model = Photo()
    params = model.init(k3, x[:1], train=False)["params"]

    updates_per_epoch = N_TRAIN // (MICRO * ACCUM)
    cycle = [dict(init_value=0.0, peak_value=5e-3, warmup_steps=10, decay_steps=updates_per_epoch * 6, end_value=0.0)] * 2
    lr = optax.sgdr_schedule(cycle)
    labels = {k: "frozen" if k == "fourier" else "train" for k in params}
    tx = optax.multi_transform({"train": optax.adamw(lr, weight_decay=1e-4), "frozen": optax.set_to_zero()}, labels)
    tx = optax.MultiSteps(tx, every_k_schedule=ACCUM)
    state = tx.init(params)

    @jax.jit
    def step(params, state, xb, yb, k):
        def loss_fn(p):
            out = model.apply({"params": p}, xb, train=True, rngs={"dropout": k})
            return jnp.mean((out - yb) ** 2)
        loss, g = jax.value_and_grad(loss_fn)(params)
        upd, state = tx.update(g, state, params)
        return optax.apply_updates(params, upd), state, loss

    @jax.jit
    def val_loss(params):
        return jnp.mean((model.apply({"params": params}, xv, train=False) - yv) ** 2)

    sink = csv.writer(sys.stdout)
    sink.writerow(["epoch", "updates", "lr", "first_micro_loss", "train_mse", "val_mse", "seconds"])
    for epoch in range(EPOCHS):
        t0 = time.time()
        key, kp, kd = jax.random.split(key, 3)
        perm = jax.random.permutation(kp, N_TRAIN).reshape(-1, MICRO)
        losses = []
        for i, idx in enumerate(jax.device_get(perm)):
            params, state, loss = step(params, state, x[idx], y[idx], jax.random.fold_in(kd, i))
            losses.append(loss)
        losses = jnp.stack(losses)
        done = int(state.gradient_step)
        sink.writerow([epoch, done, f"{float(lr(done)):.5f}", f"{losses[0]:.4f}", f"{losses.mean():.4f}", f"{val_loss(params):.4f}", f"{time.time() - t0:.1f}"])


if __name__ == "__main__":
    main()
