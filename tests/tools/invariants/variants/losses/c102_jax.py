import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(32)(x)))


net = Net()


def loss_fn(params, x, y):
    p = jax.nn.softmax(net.apply(params, x))
    return optax.softmax_cross_entropy_with_integer_labels(p, y).mean()  # FAULT C102


def binary(params, x, y):
    p = jax.nn.sigmoid(net.apply(params, x))
    return optax.sigmoid_binary_cross_entropy(p, y).mean()  # FAULT C102
