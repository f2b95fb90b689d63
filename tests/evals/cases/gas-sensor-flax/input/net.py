import flax.linen as nn
import jax.numpy as jnp


class DriftNet(nn.Module):
    """Classifies the gas from the raw resistance curves of an eight-sensor array."""

    gases: int = 6

    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9, name="norm_in")(x)
        for k, width in enumerate((32, 48)):
            x = nn.Conv(width, (5,), strides=(2,), name=f"conv{k}")(x)
            x = nn.BatchNorm(use_running_average=not train, momentum=0.9, name=f"norm{k}")(x)
            x = nn.relu(x)
        x = jnp.mean(x, axis=1)
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(self.gases)(x)
