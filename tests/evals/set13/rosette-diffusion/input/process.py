"""Cosine noising of points, continuous time in (0, 1)."""
import jax
import jax.numpy as jnp


def alpha_sigma(t):
    return jnp.cos(0.5 * jnp.pi * t), jnp.sin(0.5 * jnp.pi * t)


def noised(key, x0):
    key_t, key_e = jax.random.split(key)
    t = jax.random.uniform(key_t, (x0.shape[0],), minval=0.02, maxval=0.98)
    eps = jax.random.normal(key_e, x0.shape)
    a, s = alpha_sigma(t)
    return a[:, None] * x0 + s[:, None] * eps, t, eps


def sample(key, denoise, n, steps=60):
    ts = jnp.linspace(0.98, 0.02, steps)
    x = jax.random.normal(key, (n, 2))
    for t, nxt in zip(ts[:-1], ts[1:]):
        a, s = alpha_sigma(t)
        b, q = alpha_sigma(nxt)
        eps = denoise(x, jnp.full((n,), t))
        x = b * (x - s * eps) / a + q * eps
    return x
