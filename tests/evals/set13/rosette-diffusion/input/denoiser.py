import flax.linen as nn
import jax.numpy as jnp


class Denoiser(nn.Module):
    width: int = 128

    @nn.compact
    def __call__(self, x, t):
        freq = 2.0 ** jnp.arange(6)
        wave = t[:, None] * freq * jnp.pi
        h = jnp.concatenate([x, jnp.sin(wave), jnp.cos(wave)], -1)
        h = nn.silu(nn.Dense(self.width)(h))
        for _ in range(2):
            h = h + nn.silu(nn.Dense(self.width)(h))
        return nn.Dense(2)(h)
