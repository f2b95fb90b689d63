import jax
import jax.numpy as jnp

N_CH, LATENT, HID = 48, 6, 64


def dense(key, i, o):
    return {"w": jax.random.normal(key, (i, o)) * jnp.sqrt(2.0 / (i + o)), "b": jnp.zeros(o)}


def init(key):
    k = jax.random.split(key, 5)
    return {"e1": dense(k[0], N_CH, HID), "mu": dense(k[1], HID, LATENT), "lv": dense(k[2], HID, LATENT),
            "d1": dense(k[3], LATENT, HID), "d2": dense(k[4], HID, N_CH)}


def lin(p, x):
    return x @ p["w"] + p["b"]


def encode(p, x):
    h = jax.nn.softplus(lin(p["e1"], x))
    return lin(p["mu"], h), jnp.clip(lin(p["lv"], h), -8.0, 6.0)


def decode(p, z):
    return lin(p["d2"], jax.nn.softplus(lin(p["d1"], z)))
