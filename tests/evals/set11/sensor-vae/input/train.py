"""Variational autoencoder for 24-channel sensor frames (flax + optax)."""
from dataclasses import dataclass
from functools import partial
import csv

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState


@dataclass(frozen=True)
class Config:
    seed: int = 3
    n_train: int = 4096
    n_val: int = 1024
    channels: int = 24
    latent: int = 8
    hidden: int = 96
    batch: int = 128
    epochs: int = 8
    warm_epochs: int = 3      # beta goes 0 -> beta_max over these epochs
    beta_max: float = 1.0
    lr: float = 1e-3


def make_frames(cfg):
    rng = np.random.default_rng(cfg.seed)
    mix = rng.normal(size=(4, cfg.channels))
    bend = rng.normal(size=(4, cfg.channels))
    z = rng.normal(size=(cfg.n_train + cfg.n_val, 4))
    x = z @ mix + np.sin(1.5 * z) @ bend + 0.25 * rng.normal(size=(len(z), cfg.channels))
    x = (x - x[: cfg.n_train].mean(0)) / x[: cfg.n_train].std(0)
    x = x.astype(np.float32)
    return x[: cfg.n_train], x[cfg.n_train:]


class VAE(nn.Module):
    cfg: Config

    def setup(self):
        h, c = self.cfg.hidden, self.cfg.channels
        self.enc = nn.Sequential([nn.Dense(h), nn.gelu, nn.Dense(h), nn.gelu, nn.Dense(2 * self.cfg.latent)])
        self.dec = nn.Sequential([nn.Dense(h), nn.gelu, nn.Dense(h), nn.gelu, nn.Dense(c)])
        self.log_sigma = self.param("log_sigma", nn.initializers.constant(-0.5), (c,))

    def __call__(self, x, key):
        mu, logvar = jnp.split(self.enc(x), 2, axis=-1)
        logvar = jnp.clip(logvar, -12.0, 6.0)
        z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
        return self.nll(x, self.dec(z)), self.kl(mu, logvar)

    def nll(self, x, rec):
        s = jnp.maximum(self.log_sigma, -3.0)
        return (0.5 * ((x - rec) / jnp.exp(s)) ** 2 + s + 0.5 * jnp.log(2 * jnp.pi)).sum(-1).mean()

    @staticmethod
    def kl(mu, logvar):
        return 0.5 * (mu ** 2 + jnp.exp(logvar) - 1.0 - logvar).sum(-1).mean()

    def decode(self, z):
        return self.dec(z)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.beta = 0.0
        self.model = VAE(cfg)
        key = jax.random.PRNGKey(cfg.seed)
        params = self.model.init(key, jnp.zeros((1, cfg.channels)), key)["params"]
        tx = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(cfg.lr))
        self.state = TrainState.create(apply_fn=self.model.apply, params=params, tx=tx)

    @partial(jax.jit, static_argnums=0)
    def train_step(self, state, x, key):
        def objective(params):
            nll, kl = state.apply_fn({"params": params}, x, key)
            return nll + self.beta * kl, (nll, kl)

        (_, aux), grads = jax.value_and_grad(objective, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), aux

    @partial(jax.jit, static_argnums=0)
    def eval_step(self, params, x, key):
        k1, k2 = jax.random.split(key)
        nll, kl = self.model.apply({"params": params}, x, k1)
        z = jax.random.normal(k2, (x.shape[0], self.cfg.latent))
        fake = self.model.apply({"params": params}, z, method=VAE.decode)
        # covariance of decoded prior samples against that of the data
        gap = jnp.linalg.norm(jnp.cov(fake.T) - jnp.cov(x.T)) / jnp.linalg.norm(jnp.cov(x.T))
        return nll, kl, gap

    def fit(self, train, val):
        cfg = self.cfg
        rng = np.random.default_rng(cfg.seed + 1)
        key = jax.random.PRNGKey(cfg.seed + 1)
        n_batches = len(train) // cfg.batch
        with open("metrics.csv", "w", newline="") as fh:
            out = csv.writer(fh)
            out.writerow("epoch beta train_nll train_kl val_nll val_kl val_neg_elbo prior_cov_gap".split())
            for epoch in range(cfg.epochs):
                self.beta = cfg.beta_max * min(1.0, epoch / cfg.warm_epochs)
                order = rng.permutation(len(train))[: n_batches * cfg.batch].reshape(n_batches, -1)
                sums = np.zeros(2)
                for idx in order:
                    key, sub = jax.random.split(key)
                    self.state, aux = self.train_step(self.state, train[idx], sub)
                    sums += np.asarray(aux)
                nll, kl = sums / n_batches
                v_nll, v_kl, gap = map(float, self.eval_step(self.state.params, val, jax.random.PRNGKey(0)))
                out.writerow([epoch, f"{self.beta:.2f}"] + [f"{v:.3f}" for v in (nll, kl, v_nll, v_kl, v_nll + v_kl, gap)])
                print(f"epoch {epoch:2d} beta {self.beta:.2f} | train nll {nll:8.3f} kl {kl:8.3f} | val nll {v_nll:8.3f} "
                      f"kl {v_kl:8.3f} -elbo {v_nll + v_kl:8.3f} | prior cov gap {gap:.3f}", flush=True)


if __name__ == "__main__":
    cfg = Config()
    train, val = make_frames(cfg)
    print(cfg)
    print(f"train {train.shape} val {val.shape}")
    Trainer(cfg).fit(train, val)
