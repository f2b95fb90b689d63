"""The same, kept off their poles."""
import torch, jax, jax.numpy as jnp
from torch import nn
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4); self.p = nn.Parameter(torch.ones(1) * 3)
    def forward(self, x):
        h = torch.tanh(self.l(x))
        a = torch.log(1 - h.pow(2) + 1e-6)
        b = torch.relu(self.l(x)).clamp(min=1e-6).pow(self.p).mean(1).pow(1.0 / self.p)
        c = torch.log1p(-h.pow(2).clamp(max=0.999))
        d = ((h[:, None] - h[None]).pow(2).sum(-1) + 1e-9).sqrt()
        return a.sum() + b.sum() + d.sum() + c.sum()
def train(loader):
    n = N(); o = torch.optim.Adam(n.parameters())
    for x in loader:
        l = n(x); o.zero_grad(); l.backward(); o.step()
def energy(pos):
    diff = pos[:, None, :] - pos[None, :, :]
    sq = jnp.sum(diff ** 2, axis=-1)
    r = jnp.sqrt(jnp.where(jnp.eye(len(pos), dtype=bool), 1.0, sq))
    return (1.0 / (1.0 + r)).sum() + jnp.exp(-sq).sum()
def cross(a, b):
    return jnp.linalg.norm(a[:, None] - b[None], axis=-1).sum()
force = jax.grad(energy)
f2 = jax.grad(cross)
def run(pos, b):
    d = jnp.linalg.norm(pos[:, None] - pos[None], axis=-1)
    return force(pos), f2(pos, b), d
