import math

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, hidden, T):
        super().__init__()
        self.freqs = nn.Parameter(torch.exp(torch.linspace(0, math.log(25.0), 16)), requires_grad=False)
        self.T = T
        self.inp = nn.Linear(2 + 32, hidden)
        self.mid = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        a = (t.float() / self.T)[:, None] * self.freqs
        h = self.inp(torch.cat([x, a.sin(), a.cos()], dim=1))
        for layer in self.mid:
            h = h + layer(nn.functional.silu(h))
        return self.out(nn.functional.silu(h))


class Process:
    def __init__(self, T):
        self.T = T
        self.beta = torch.linspace(1e-3, 0.15, T)
        self.alpha = 1 - self.beta
        self.abar = torch.cumprod(self.alpha, 0)

    def noisy(self, x0, t, eps):
        a = self.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    @torch.no_grad()
    def sample(self, net, n, g):
        x = torch.randn(n, 2, generator=g)
        for i in reversed(range(self.T)):
            t = torch.full((n,), i)
            eps = net(x, t)
            x = (x - self.beta[i] / (1 - self.abar[i]).sqrt() * eps) / self.alpha[i].sqrt()
            if i:
                x = x + self.beta[i].sqrt() * torch.randn(n, 2, generator=g)
        return x


class Average:
    """Keeps averaged weights for sampling."""

    def __init__(self, net, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in net.state_dict().items()}

    @torch.no_grad()
    def update(self, net):
        for k, v in net.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)
