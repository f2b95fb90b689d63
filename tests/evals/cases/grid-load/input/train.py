import csv
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from series import dataset


class Forecaster(nn.Module):
    width: int = 96
    horizon: int = 6
    drop: float = 0.1

    @nn.compact
    def __call__(self, x, train: bool):
        h = x
        for _ in range(2):
            h = nn.gelu(nn.Dense(self.width)(h))
            h = nn.Dropout(self.drop, deterministic=not train)(h)
        return x[:, -1:] + nn.Dense(self.horizon)(h)


model = Forecaster()
tx = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 2e-3, 100, 1200), weight_decay=1e-4)


def mse(params, x, y, rng=None):
    train = rng is not None
    pred = model.apply(params, x, train, rngs={"dropout": rng} if train else None)
    return jnp.mean((pred - y) ** 2)


@jax.jit
def train_step(params, opt_state, data, rng):
    pick_key, drop_key = jax.random.split(rng)
    x, y = data
    rows = jax.random.choice(pick_key, x.shape[0], (32,), replace=False)
    loss, grads = jax.value_and_grad(mse)(params, x[rows], y[rows], drop_key)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main(n_steps=1200, report=100):
    (xtr, ytr), (xva, yva) = dataset()
    data = (jnp.asarray(xtr), jnp.asarray(ytr))
    rng, init_rng = jax.random.split(jax.random.key(0))
    params = model.init(init_rng, data[0][:2], False)
    opt_state = tx.init(params)
    persistence = float(jnp.mean((xva[:, -1:] - yva) ** 2))
    print(f"windows: {len(xtr)} train, {len(xva)} val; persistence baseline mse={persistence:.4f}")
    writer = csv.writer(open("metrics.csv", "w"))
    writer.writerow(["step", "batch_mse", "val_mse"])
    t0 = time.time()
    for step in range(1, n_steps + 1):
        params, opt_state, loss = train_step(params, opt_state, data, rng)
        if step % report == 0:
            val = float(mse(params, xva, yva))
            writer.writerow([step, f"{float(loss):.5f}", f"{val:.5f}"])
            print(f"step {step:>5} | batch_mse {float(loss):.4f} | val_mse {val:.4f} | {step / (time.time() - t0):.0f} steps/s")


if __name__ == "__main__":
    main()
