"""Roots of other exponents, and distances of all pairs."""
import torch, jax, jax.numpy as jnp
from torch import nn
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
    def forward(self, x):
        h = torch.tanh(self.l(x))
        a = torch.log1p(-h ** 2)  # FAULT C107
        b = torch.relu(self.l(x)) ** (1 / 3)  # FAULT C111
        d = (h[:, None] - h[None]).pow(2).sum(-1).sqrt()  # FAULT C111
        return a.sum() + b.sum() + d.sum()
def train(loader):
    n = N(); o = torch.optim.Adam(n.parameters())
    for x in loader:
        l = n(x); o.zero_grad(); l.backward(); o.step()
def energy(pos):
    diff = pos[:, None, :] - pos[None, :, :]
    r = jnp.sqrt(jnp.sum(diff ** 2, axis=-1))  # FAULT C111
    return (1.0 / (1.0 + r)).sum()
force = jax.grad(energy)
def run(pos):
    return force(pos)
