import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from denoiser import Denoiser
from process import noised, sample


def loss_fn(params, apply, x0, key):
    xt, t, eps = noised(key, x0)
    return jnp.mean((apply({"params": params}, xt, t) - eps) ** 2)


@jax.jit
def train_step(state, x0, key):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, state.apply_fn, x0, key)
    return state.apply_gradients(grads=grads), loss


def nearest(a, b):
    """Mean distance of each row of a to its nearest row of b."""
    return float(np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)).min(1).mean())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2500)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    train, valid = np.load("points/train.npy"), np.load("points/valid.npy")
    n_batches = len(train) // args.batch
    key = jax.random.PRNGKey(args.seed)
    key, init_key, valid_key, draw_key = jax.random.split(key, 4)
    model = Denoiser()
    params = model.init(init_key, jnp.zeros((1, 2)), jnp.zeros((1,)))["params"]
    tx = optax.adam(optax.cosine_decay_schedule(args.lr, args.epochs * n_batches))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    evaluate = jax.jit(lambda params: loss_fn(params, model.apply, valid, valid_key))
    order = np.random.default_rng(args.seed)
    for epoch in range(1, args.epochs + 1):
        epoch_key, noise_key = jax.random.split(key)
        step_keys = jax.random.split(noise_key, n_batches)
        rows = order.permutation(len(train)).reshape(n_batches, -1)
        losses = []
        for r, k in zip(rows, step_keys):
            state, loss = train_step(state, train[r], k)
            losses.append(loss)
        if epoch % 125 == 0:
            print(f"epoch {epoch} train_mse {np.mean(jax.device_get(losses)):.4f} valid_mse {evaluate(state.params):.4f}", flush=True)
    drawn = jax.jit(lambda k, prm: sample(k, lambda x, t: model.apply({"params": prm}, x, t), 1000))(draw_key, state.params)
    drawn = np.asarray(drawn)
    print(f"samples: distance to data {nearest(drawn, valid):.4f}, data to samples {nearest(valid, drawn):.4f}, |x| max {np.abs(drawn).max():.2f}")


if __name__ == "__main__":
    main()
