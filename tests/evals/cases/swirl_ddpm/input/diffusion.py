import jax
import jax.numpy as jnp
import numpy as np


class Schedule:
    def __init__(self, steps=100, lo=1e-3, hi=0.08):
        self.steps = steps
        self.betas = jnp.linspace(lo, hi, steps)
        self.alphas = 1.0 - self.betas
        self.abar = jnp.cumprod(self.alphas)

    def add_noise(self, x0, t, eps):
        a = self.abar[t][:, None]
        return jnp.sqrt(a) * x0 + jnp.sqrt(1 - a) * eps


def ancestral_sample(model, sched, key, n):
    """Plain DDPM ancestral sampling, T-1 ... 0."""
    key, sub = jax.random.split(key)
    x = jax.random.normal(sub, (n, 2))
    net = jax.vmap(model, in_axes=(0, None))

    def body(x, inp):
        t, k = inp
        eps = net(x, t)
        mean = (x - sched.betas[t] / jnp.sqrt(1 - sched.abar[t]) * eps) / jnp.sqrt(sched.alphas[t])
        noise = jax.random.normal(k, x.shape) * jnp.sqrt(sched.betas[t])
        return mean + jnp.where(t > 0, noise, 0.0), None

    ts = jnp.arange(sched.steps - 1, -1, -1)
    x, _ = jax.lax.scan(body, x, (ts, jax.random.split(key, sched.steps)))
    return x


def sliced_w1(a, b, n_proj=64, seed=0):
    rng = np.random.default_rng(seed)
    d = rng.normal(size=(2, n_proj))
    d /= np.linalg.norm(d, axis=0)
    return float(np.abs(np.sort(np.asarray(a) @ d, 0) - np.sort(np.asarray(b) @ d, 0)).mean())
