import math

import torch
import torch.nn as nn


def time_features(t, dim=32):
    """t in [0, 1] -> sines and cosines."""
    f = torch.exp(torch.linspace(0, math.log(60.0), dim // 2))
    a = t[:, None] * f
    return torch.cat([a.sin(), a.cos()], -1)


class Denoiser(nn.Module):
    def __init__(self, points, width=192):
        super().__init__()
        self.inp = nn.Linear(points, width)
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.body = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
                                  for _ in range(3))
        self.out = nn.Linear(width, points)

    def forward(self, x, t):
        h = self.inp(x)
        e = self.time(time_features(t))
        for block in self.body:
            h = h + block(h + e)
        return self.out(h)


class Diffusion:
    def __init__(self, steps):
        self.steps = steps
        beta = torch.linspace(1e-3, 0.12, steps)
        self.beta, self.alpha = beta, 1 - beta
        self.bar = torch.cumprod(self.alpha, 0)

    def loss(self, net, x0):
        i = torch.randint(0, self.steps, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.bar[i][:, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        return (net(xt, i / self.steps) - noise).square().mean()

    @torch.no_grad()
    def sample(self, net, n, points):
        x = torch.randn(n, points)
        for i in reversed(range(self.steps)):
            t = torch.full((n,), float(i))
            eps = net(x, t)
            x = (x - self.beta[i] / (1 - self.bar[i]).sqrt() * eps) / self.alpha[i].sqrt()
            if i:
                x = x + self.beta[i].sqrt() * torch.randn_like(x)
        return x
