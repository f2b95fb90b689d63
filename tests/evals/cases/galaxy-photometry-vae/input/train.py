"""VAE over galaxy photometry (flax)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

BANDS, LATENT = 10, 4


def survey(n, seed):
    rng = np.random.default_rng(seed)
    redshift = rng.gamma(2.0, 0.4, n)
    mass = rng.normal(10.2, 0.6, n)
    wave = np.linspace(0, 1, BANDS)
    flux = 10 ** (0.4 * (mass[:, None] - 4.5)) * np.exp(-((wave - redshift[:, None] / 3) ** 2) / 0.1)
    return (flux + rng.normal(0, 0.2, flux.shape)).astype(np.float32)


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Dense(64)(x))
        h = nn.relu(nn.Dense(64)(h))
        return nn.Dense(LATENT)(h), nn.Dense(LATENT)(h)


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, z):
        return nn.Dense(BANDS)(nn.relu(nn.Dense(64)(z)))


enc, dec = Encoder(), Decoder()


def elbo_terms(params, x, key):
    mu, logvar = enc.apply(params["enc"], x)
    z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
    recon = jnp.mean(jnp.sum((dec.apply(params["dec"], z) - x) ** 2, -1))
    kl = jnp.mean(0.5 * jnp.sum(jnp.exp(logvar) + mu ** 2 - 1 - logvar, -1))
    return recon + kl, (recon, kl)


def main():
    x = survey(4000, 0)
    k1, k2, key = jax.random.split(jax.random.key(3), 3)
    params = {"enc": enc.init(k1, x[:1]), "dec": dec.init(k2, jnp.zeros((1, LATENT)))}
    tx = optax.adam(1e-2)
    state = tx.init(params)

    @jax.jit
    def step(params, state, batch, key):
        (loss, aux), g = jax.value_and_grad(elbo_terms, has_aux=True)(params, batch, key)
        up, state = tx.update(g, state, params)
        return optax.apply_updates(params, up), state, loss, aux

    rng = np.random.default_rng(1)
    for it in range(120):
        key, sub = jax.random.split(key)
        params, state, loss, (recon, kl) = step(params, state, x[rng.integers(0, len(x), 128)], sub)
        if it < 6 or it % 10 == 0:
            print(f"iter {it:>4} | elbo loss {loss:.4g} | recon {recon:.4g} | kl {kl:.4g}")


if __name__ == "__main__":
    main()
