import equinox as eqx
import jax
import jax.numpy as jnp
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        self.inner = nn.Linear(8, 64)
        drop = nn.Dropout(0.1)
        inner = self.inner
        layer = nn.Linear(64, 64)
        self.add_module("layer", layer)
        self.lift = lambda x: layer(inner(drop(x)).relu())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.lift(x))


class Field(eqx.Module):
    table: jax.Array
    scale: jax.Array
    fn: callable

    def __init__(self, key):
        self.table = jax.random.normal(key, (4, 4))
        scale = jnp.ones(3)
        start = jax.random.normal(jax.random.fold_in(key, 1), (4,))
        self.scale = start
        self.fn = lambda x: x * scale[0] + start

    def __call__(self, x):
        return self.fn(self.table @ x)


def train(loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
