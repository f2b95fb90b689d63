"""VAE of absorbance spectra. Linear KL warm-up over the first epochs, then draw synthetic spectra from the prior."""
import functools
import time
import jax
import jax.numpy as jnp
import numpy as np
import optax
from model import N_CH, LATENT, decode, encode, init


def spectra(n, seed):
    r = np.random.default_rng(seed)
    wl = np.linspace(0, 1, N_CH)
    c1, c2 = 0.3 + 0.04 * r.normal(size=n), 0.7 + 0.05 * r.normal(size=n)
    a1, a2 = r.gamma(4, 0.25, n), r.gamma(3, 0.3, n)
    x = a1[:, None] * np.exp(-((wl - c1[:, None]) / 0.08) ** 2) + a2[:, None] * np.exp(-((wl - c2[:, None]) / 0.11) ** 2)
    return (x + 0.05 * r.normal(size=x.shape)).astype(np.float32)


class Trainer:
    def __init__(self, seed=0, lr=2e-3, epochs=24, warmup_epochs=10, batch=128, sigma=0.1):
        self.epochs, self.warmup, self.batch, self.sigma = epochs, warmup_epochs, batch, sigma
        self.key = jax.random.PRNGKey(seed)
        self.key, k = jax.random.split(self.key)
        self.params = init(k)
        self.tx = optax.adam(lr)
        self.opt_state = self.tx.init(self.params)
        self.kl_weight = 0.0

    def elbo_terms(self, params, x, key):
        mu, lv = encode(params, x)
        z = mu + jnp.exp(0.5 * lv) * jax.random.normal(key, mu.shape)
        rec = 0.5 * jnp.sum(((decode(params, z) - x) / self.sigma) ** 2, -1).mean()
        kl = 0.5 * jnp.sum(mu ** 2 + jnp.exp(lv) - 1.0 - lv, -1).mean()
        return rec, kl

    def loss(self, params, x, key):
        rec, kl = self.elbo_terms(params, x, key)
        return rec + self.kl_weight * kl, (rec, kl)

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(self, params, opt_state, x, key):
        (_, aux), g = jax.value_and_grad(self.loss, has_aux=True)(params, x, key)
        upd, opt_state = self.tx.update(g, opt_state)
        return optax.apply_updates(params, upd), opt_state, aux

    def set_epoch(self, epoch):
        self.kl_weight = min(1.0, epoch / self.warmup)

    def fit(self, data, held):
        rng = np.random.default_rng(1)
        for epoch in range(self.epochs):
            self.set_epoch(epoch)
            t0, recs, kls = time.time(), [], []
            order = rng.permutation(len(data))
            for i in range(0, len(data) - self.batch + 1, self.batch):
                self.key, k = jax.random.split(self.key)
                self.params, self.opt_state, (rec, kl) = self.train_step(self.params, self.opt_state, data[order[i:i + self.batch]], k)
                recs.append(float(rec)); kls.append(float(kl))
            rec, kl = np.mean(recs), np.mean(kls)
            if epoch % 3 == 0 or epoch == self.epochs - 1:
                fid = self.prior_distance(held)
                print(f"ep {epoch:02d} | kl_w {self.kl_weight:.2f} | rec {rec:8.2f} | kl {kl:8.2f} | loss {rec + self.kl_weight * kl:8.2f} | prior dist {fid:6.3f} | {time.time() - t0:.1f}s", flush=True)

    def prior_distance(self, held, n=2000):
        """Mean absolute difference of per-channel quantiles between prior samples and held-out spectra."""
        z = jax.random.normal(jax.random.PRNGKey(99), (n, LATENT))
        s = np.asarray(decode(self.params, z))
        q = np.linspace(0.05, 0.95, 19)
        return float(np.abs(np.quantile(s, q, axis=0) - np.quantile(held, q, axis=0)).mean())


if __name__ == "__main__":
    print("jax", jax.__version__, jax.devices()[0].platform)
    train, held = spectra(6000, 0), spectra(1500, 1)
    print("train", train.shape, "range", train.min().round(2), train.max().round(2))
    Trainer().fit(train, held)
