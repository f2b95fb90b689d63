# Equinox VAE on noisy two-parameter curves, KL weight annealed from 0 to 1 over the first epochs.
import logging

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("vae")
logging.getLogger("jax").setLevel(logging.WARNING)


class VAE(eqx.Module):
    enc: eqx.nn.MLP
    dec: eqx.nn.MLP
    latent: int = eqx.field(static=True)

    def __init__(self, size, latent, key):
        k1, k2 = jr.split(key)
        self.enc = eqx.nn.MLP(size, 2 * latent, 96, 2, activation=jax.nn.silu, key=k1)
        self.dec = eqx.nn.MLP(latent, size, 96, 2, activation=jax.nn.silu, key=k2)
        self.latent = latent

    def __call__(self, x, key):
        mu, logvar = jnp.split(self.enc(x), 2)
        z = mu + jnp.exp(0.5 * logvar) * jr.normal(key, mu.shape)
        return self.dec(z), mu, logvar


def curves(key, n, size=32):
    ka, kp, ke = jr.split(key, 3)
    amp = jr.uniform(ka, (n, 1), minval=0.5, maxval=2.0)
    phase = jr.uniform(kp, (n, 1), maxval=2 * jnp.pi)
    t = jnp.linspace(0, 2 * jnp.pi, size)
    return amp * jnp.sin(t + phase) + 0.3 * jr.normal(ke, (n, size))


class Experiment:
    noise_var = 0.3 ** 2

    def __init__(self, epochs=16, warm=8, batch=100, lr=1.5e-3):
        self.epochs, self.warm, self.batch = epochs, warm, batch
        k_data, k_model, self.key = jr.split(jr.key(7), 3)
        self.data = curves(k_data, 3000)
        self.model = VAE(32, 4, k_model)
        self.opt = optax.adam(lr)
        self.opt_state = self.opt.init(eqx.filter(self.model, eqx.is_array))
        self.kl_weight = 0.0
        self.step = eqx.filter_jit(self._step)

    def elbo(self, model, x, key):
        keys = jr.split(key, len(x))
        rec, mu, logvar = jax.vmap(model)(x, keys)
        nll = 0.5 * jnp.sum((x - rec) ** 2, axis=-1).mean() / self.noise_var
        kl = 0.5 * jnp.sum(jnp.exp(logvar) + mu ** 2 - 1 - logvar, axis=-1).mean()
        return nll + self.kl_weight * kl, (nll, kl)

    def _step(self, model, opt_state, x, key):
        (loss, parts), grads = eqx.filter_value_and_grad(self.elbo, has_aux=True)(model, x, key)
        updates, opt_state = self.opt.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss, parts

    def anneal(self, epoch):
        self.kl_weight = min(1.0, epoch / self.warm)

    def prior_gap(self, key):
        """spread of decoded prior samples against the data (1.0 is perfect)"""
        z = jr.normal(key, (1000, self.model.latent))
        return float(jax.vmap(self.model.dec)(z).std() / self.data.std())

    def run(self):
        for epoch in range(self.epochs):
            self.anneal(epoch)
            self.key, k_perm, k_eps, k_prior = jr.split(self.key, 4)
            perm = jr.permutation(k_perm, len(self.data))
            sums = jnp.zeros(3)
            n = len(self.data) // self.batch
            for i, k in enumerate(jr.split(k_eps, n)):
                x = self.data[perm[i * self.batch:(i + 1) * self.batch]]
                self.model, self.opt_state, loss, (nll, kl) = self.step(self.model, self.opt_state, x, k)
                sums += jnp.stack([loss, nll, kl])
            loss, nll, kl = (sums / n).tolist()
            log.info("epoch=%02d beta=%.3f loss=%.3f nll=%.3f kl=%.3f sample_spread=%.2f", epoch, self.kl_weight, loss, nll, kl, self.prior_gap(k_prior))


if __name__ == "__main__":
    Experiment().run()
