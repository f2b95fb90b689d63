"""Jet tagging with a deep-sets network in flax. 10 classes of toy jets."""
import argparse
import csv
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state


class DeepSets(nn.Module):
    n_class: int = 10
    width: int = 64

    @nn.compact
    def __call__(self, constituents):
        h = nn.relu(nn.Dense(self.width)(constituents))
        h = nn.relu(nn.Dense(self.width)(h)).mean(axis=-2)
        h = nn.relu(nn.Dense(self.width)(h))
        return nn.softmax(nn.Dense(self.n_class)(h))


def make_jets(n, seed, n_part=12, n_class=10):
    rng = np.random.default_rng(50)
    centre = rng.normal(size=(n_class, 3))
    spread = rng.uniform(0.2, 1.2, size=(n_class, 3))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_class, n)
    x = 1.2 * centre[y][:, None] + spread[y][:, None] * rng.normal(size=(n, n_part, 3))
    return x.astype(np.float32), y


@partial(jax.jit, static_argnums=())
def update(state, x, y):
    def loss_fn(params):
        scores = state.apply_fn(params, x)
        ce = optax.softmax_cross_entropy_with_integer_labels(scores, y)
        return ce.mean(), scores
    (ce, scores), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads), ce, (scores.argmax(-1) == y).mean(), optax.global_norm(grads)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--bs", type=int, default=100)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()
    x, y = make_jets(3000, 1)
    model = DeepSets()
    state = train_state.TrainState.create(apply_fn=model.apply, params=model.init(jax.random.key(0), x[:1]),
                                          tx=optax.adam(args.lr))
    rng = np.random.default_rng(2)
    with open("metrics.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["epoch", "ce", "acc", "gnorm"])
        for ep in range(args.epochs):
            rows = []
            for idx in np.split(rng.permutation(len(x)), len(x) // args.bs):
                state, *row = update(state, x[idx], y[idx])
                rows.append([float(r) for r in row])
            ce, acc, gn = np.mean(rows, 0)
            out.writerow([ep, ce, acc, gn])
            print(f"Ep.{ep:>3}  ce {ce:.4f}  top1 {100 * acc:5.1f}%  |g| {gn:.4f}")


if __name__ == "__main__":
    main()
