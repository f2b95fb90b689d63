"""Variational autoencoder for gas sensor arrays, with a slow start of the KL weight."""
import csv

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

LATENT, HIDDEN, BATCH, EPOCHS = 4, 48, 64, 22
BETA_START, BETA_END, BETA_MAX = 6, 18, 1.0


class Vae(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, key):
        h = nn.tanh(nn.Dense(HIDDEN)(x))
        mu, logvar = jnp.split(nn.Dense(2 * LATENT)(h), 2, -1)
        z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
        h = nn.tanh(nn.Dense(HIDDEN)(z))
        return nn.Dense(self.width)(h), mu, logvar


def terms(model, params, x, key):
    out, mu, logvar = model.apply(params, x, key)
    rec = 0.5 * ((out - x) ** 2 / 0.5).sum(-1).mean()
    kl = 0.5 * (mu ** 2 + jnp.exp(logvar) - 1.0 - logvar).sum(-1).mean()
    return rec, kl


def beta_at(epoch):
    return BETA_MAX * float(np.clip((epoch - BETA_START) / (BETA_END - BETA_START), 0.0, 1.0))


def main():
    x = np.load("sensors.npy").astype(np.float32)
    x = (x - x.mean(0)) / x.std(0)
    train, val = x[:-200], x[-200:]
    model = Vae(x.shape[1])
    key = jax.random.PRNGKey(50)
    key, k1, k2 = jax.random.split(key, 3)
    params = model.init(k1, train[:2], k2)
    tx = optax.adam(6e-3)
    state = tx.init(params)

    @jax.jit
    def step(params, state, xb, key, beta):
        def loss_fn(p):
            rec, kl = terms(model, p, xb, key)
            return rec + beta * kl, (rec, kl)
        (loss, aux), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state, loss, aux

    evaluate = jax.jit(lambda p, k: terms(model, p, val, k))
    rng = np.random.default_rng(50)
    rows = []
    for epoch in range(EPOCHS):
        beta, parts = beta_at(epoch), []
        order = rng.permutation(len(train))
        for i in range(len(train) // BATCH):
            key, sub = jax.random.split(key)
            params, state, loss, (rec, kl) = step(params, state, train[order[i * BATCH:(i + 1) * BATCH]], sub, beta)
            parts.append((float(loss), float(rec), float(kl)))
        loss, rec, kl = np.mean(parts, 0)
        vrec, vkl = (float(v) for v in evaluate(params, jax.random.PRNGKey(0)))
        rows.append([epoch, beta, loss, rec, kl, vrec + vkl])
        print(f"epoch {epoch:2d}  beta {beta:.2f}  loss {loss:8.3f}  rec {rec:8.3f}  kl {kl:7.3f}  val -elbo {vrec + vkl:8.3f}", flush=True)
    with open("metrics.csv", "w", newline="") as f:
        csv.writer(f).writerows([["epoch", "beta", "loss", "rec", "kl", "val_neg_elbo"], *rows])


if __name__ == "__main__":
    main()
