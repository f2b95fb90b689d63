import flax.linen as nn
import jax
import jax.numpy as jnp


class GlyphVAE(nn.Module):
    latent: int = 12
    hidden: int = 160

    def setup(self):
        self.enc = [nn.Dense(self.hidden), nn.Dense(2 * self.latent)]
        self.dec = [nn.Dense(self.hidden), nn.Dense(196)]

    def __call__(self, x, key):
        mu, logvar = jnp.split(self.enc[1](nn.relu(self.enc[0](x))), 2, -1)
        z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
        return self.dec[1](nn.relu(self.dec[0](z))), mu, logvar
