import equinox as eqx
import jax
import jax.numpy as jnp


class TimeFeatures(eqx.Module):
    freqs: jax.Array

    def __init__(self, n=8):
        self.freqs = jnp.pi * 2.0 ** jnp.arange(n) / 2.0

    def __call__(self, t):
        ang = jax.lax.stop_gradient(self.freqs) * t
        return jnp.concatenate([jnp.sin(ang), jnp.cos(ang)])


class Denoiser(eqx.Module):
    embed: TimeFeatures
    layers: list
    out: eqx.nn.Linear

    def __init__(self, key, width=96, depth=3):
        keys = jax.random.split(key, depth + 1)
        self.embed = TimeFeatures(6)
        sizes = [2 + 12] + [width] * depth
        self.layers = [eqx.nn.Linear(a + (12 if i else 0), b, key=k)
                       for i, (a, b, k) in enumerate(zip(sizes[:-1], sizes[1:], keys))]
        self.out = eqx.nn.Linear(width, 2, key=keys[-1])

    def __call__(self, x, t):
        e = self.embed(t)
        h = x
        for layer in self.layers:
            h = jax.nn.silu(layer(jnp.concatenate([h, e])))
        return self.out(h)
