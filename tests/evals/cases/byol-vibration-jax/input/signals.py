import jax
import jax.numpy as jnp
import numpy as np

MACHINES, N = 5, 64


def vibrations(n, seed):
    rng = np.random.default_rng(seed)
    ref = np.random.default_rng(500)
    f = ref.uniform(2, 14, size=(MACHINES, 3))
    a = ref.uniform(0.5, 1.5, size=(MACHINES, 3))
    y = rng.integers(0, MACHINES, n)
    t = np.linspace(0, 1, N)
    ph = rng.uniform(0, 2 * np.pi, (n, 3, 1))
    s = (a[y][:, :, None] * np.sin(2 * np.pi * f[y][:, :, None] * t + ph)).sum(1)
    spec = np.abs(np.fft.rfft(s + 0.3 * rng.normal(size=s.shape), axis=1))[:, 1:25]
    return np.log1p(spec).astype(np.float32), y


def view(key, x):
    k1, k2, k3 = jax.random.split(key, 3)
    gain = jax.random.uniform(k1, (len(x), 1), minval=0.7, maxval=1.3)
    keep = jax.random.bernoulli(k2, 0.85, x.shape)
    return x * gain * keep + 0.1 * jax.random.normal(k3, x.shape)
