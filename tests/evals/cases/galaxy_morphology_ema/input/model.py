import flax.linen as nn
import jax.numpy as jnp


class ConvBlock(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(self.width, (3, 3), strides=(self.stride, self.stride), use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return nn.relu(x)


class MorphNet(nn.Module):
    n_classes: int = 3

    @nn.compact
    def __call__(self, x, train: bool):
        for width, stride in ((12, 2), (24, 2), (32, 2)):
            x = ConvBlock(width, stride)(x, train)
        x = jnp.mean(x, axis=(1, 2))
        return nn.Dense(self.n_classes)(x)
