import jax
import jax.numpy as jnp


def glorot(key, a, b):
    return {"w": jax.random.normal(key, (a, b)) * (2.0 / (a + b)) ** 0.5, "b": jnp.zeros(b)}


def lin(p, x):
    return x @ p["w"] + p["b"]


def init(key, n_in, hidden, latent):
    k = jax.random.split(key, 5)
    return {
        "enc": glorot(k[0], n_in, hidden),
        "mu": glorot(k[1], hidden, latent),
        "logvar": glorot(k[2], hidden, latent),
        "dec": glorot(k[3], latent, hidden),
        "out": glorot(k[4], hidden, n_in),
    }


def encode(p, x):
    h = jnp.tanh(lin(p["enc"], x))
    return lin(p["mu"], h), lin(p["logvar"], h)


def decode(p, z):
    return lin(p["out"], jnp.tanh(lin(p["dec"], z)))


def gaussian_kl(mu, logvar):
    return 0.5 * jnp.sum(jnp.exp(logvar) + mu**2 - 1.0 - logvar, axis=-1).mean()
