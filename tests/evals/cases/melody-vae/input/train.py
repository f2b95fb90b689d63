import csv

import jax
import jax.numpy as jnp
import numpy as np
import optax

import model

DIM, HIDDEN, LATENT = 16, 48, 4


def melodies(n, seed):
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(0).normal(size=(3, DIM))
    return (rng.normal(size=(n, 3)) @ basis + 0.3 * rng.normal(size=(n, DIM))).astype(np.float32)


class AnnealedVAE:
    """Variational autoencoder with linear KL warm-up over `warm` updates."""

    def __init__(self, seed=0, warm=400, lr=2e-3):
        self.warm = warm
        self.updates = 0
        self.key, k = jax.random.split(jax.random.key(seed))
        self.params = model.init(k, DIM, HIDDEN, LATENT)
        self.tx = optax.adam(lr)
        self.opt_state = self.tx.init(self.params)
        self._update = jax.jit(self._raw_update)

    @property
    def beta(self):
        return min(1.0, self.updates / self.warm)

    def _elbo_terms(self, params, key, x):
        mu, logvar = model.encode(params, x)
        z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
        rec = 0.5 * jnp.sum((model.decode(params, z) - x) ** 2, axis=-1).mean()
        return rec, model.gaussian_kl(mu, logvar)

    def _objective(self, params, key, x):
        rec, kl = self._elbo_terms(params, key, x)
        return rec + self.beta * kl, (rec, kl)

    def _raw_update(self, params, opt_state, key, x):
        (total, parts), grads = jax.value_and_grad(self._objective, has_aux=True)(params, key, x)
        updates, opt_state = self.tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, total, parts

    def partial_fit(self, x):
        self.key, k = jax.random.split(self.key)
        self.params, self.opt_state, total, (rec, kl) = self._update(self.params, self.opt_state, k, x)
        self.updates += 1
        return float(total), float(rec), float(kl)

    def sample(self, n, seed=1):
        z = jax.random.normal(jax.random.key(seed), (n, LATENT))
        return np.asarray(model.decode(self.params, z))


def sample_gap(generated, real):
    """Distance of the covariances, 0 is perfect."""
    a, b = np.cov(generated.T), np.cov(real.T)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def main():
    data, held_out = melodies(4000, 1), melodies(1000, 2)
    rng = np.random.default_rng(3)
    vae = AnnealedVAE()
    with open("elbo.csv", "w", newline="") as fh:
        out = csv.writer(fh)
        out.writerow(["update", "beta", "objective", "rec", "kl", "sample_gap"])
        for it in range(1001):
            beta = vae.beta
            total, rec, kl = vae.partial_fit(data[rng.integers(0, len(data), 128)])
            if it % 100 == 0:
                gap = sample_gap(vae.sample(2000), held_out)
                out.writerow([it, beta, total, rec, kl, gap])
                print(f"update {it:5d} | beta {beta:.2f} | objective {total:9.3f} | rec {rec:8.3f} | kl {kl:8.3f} | sample gap {gap:.3f}", flush=True)


if __name__ == "__main__":
    main()
