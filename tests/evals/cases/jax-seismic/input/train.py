import csv

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from freeze import optimizer

PHASES = 3  # noise, P, S


class Picker(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Conv(16, (7,), strides=(2,), name="enc_0")(x))
        h = nn.relu(nn.Conv(24, (5,), strides=(2,), name="enc_1")(h))
        h = jnp.concatenate([h.mean(1), h.max(1)], -1)
        h = nn.tanh(nn.Dense(32, name="station")(h))
        return nn.Dense(PHASES, name="enclosing_class")(h)


def traces(rng, n, gain, order):
    y = rng.integers(0, PHASES, n)
    t = np.arange(96)
    onset = rng.integers(20, 60, n)[:, None]
    freq = np.array([0.0, 0.9, 0.35])[y][:, None]
    env = (t >= onset) * np.exp(-np.maximum(t - onset, 0) / 18)
    sig = env * np.sin(freq * (t - onset)) * np.array([0, 1.4, 2.2])[y][:, None]
    x = gain * (sig + 0.5 * rng.standard_normal((n, 96)))
    return x[..., None].astype(np.float32), np.asarray(order)[y].astype(np.int32)


def loss_fn(model, params, x, y):
    logits = model.apply({"params": params}, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), (logits.argmax(-1) == y).mean()


def fit(model, params, tx, data, val, epochs, rng, stage, rows):
    opt_state = tx.init(params)

    @jax.jit
    def step(params, opt_state, x, y):
        (loss, _), g = jax.value_and_grad(lambda p: loss_fn(model, p, x, y), has_aux=True)(params)
        up, opt_state = tx.update(g, opt_state, params)
        return optax.apply_updates(params, up), opt_state, loss

    x, y = data
    for epoch in range(epochs):
        losses = []
        for b in np.array_split(rng.permutation(len(y)), len(y) // 50):
            params, opt_state, loss = step(params, opt_state, x[b], y[b])
            losses.append(float(loss))
        vl, va = loss_fn(model, params, *val)
        rows.append([stage, epoch, np.mean(losses), float(vl), float(va)])
        print("{:<8s} epoch {:2d} loss {:.4f} val_loss {:.4f} val_acc {:.3f}".format(*rows[-1]))
    return params


def main():
    rng = np.random.default_rng(4)
    model = Picker()
    rows = []
    old = dict(gain=1.0, order=[0, 1, 2])
    new = dict(gain=0.7, order=[2, 0, 1])  # the new agency numbers the phases in its own way
    params = model.init(jax.random.key(0), jnp.zeros((1, 96, 1)))["params"]
    params = fit(model, params, optax.adam(2e-3), traces(rng, 2500, **old), traces(rng, 500, **old), 8, rng, "pretrain", rows)
    before = jax.tree.map(jnp.copy, params)
    tx = optimizer(params, 1e-3)
    params = fit(model, params, tx, traces(rng, 600, **new), traces(rng, 500, **new), 25, rng, "tune", rows)
    for name in params:
        moved = max(float(jnp.abs(a - b).max()) for a, b in zip(jax.tree.leaves(params[name]), jax.tree.leaves(before[name])))
        print(f"moved {name}: {moved:.4f}")
    with open("metrics.csv", "w", newline="") as f:
        csv.writer(f).writerows([["stage", "epoch", "loss", "val_loss", "val_acc"], *rows])


if __name__ == "__main__":
    main()
