import math

import torch
from torch import nn


class GaussianDiffusion:
    """Forward process and ancestral sampler with a linear beta schedule."""

    def __init__(self, cfg):
        self.T = int(cfg["timesteps"])
        beta_0 = cfg.get("beta_start", 1e-4)
        beta_T = cfg.get("beta_end", 0.02)
        self.betas = torch.linspace(beta_0, beta_T, self.T)
        self.alphas = 1.0 - self.betas
        self.abar = torch.cumprod(self.alphas, 0)

    def q_sample(self, x0, t, eps):
        a = self.abar[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    def loss(self, net, x0):
        t = torch.randint(0, self.T, (len(x0),))
        eps = torch.randn_like(x0)
        pred = net(self.q_sample(x0, t, eps), t.float() / self.T)
        return (pred - eps).pow(2).sum(-1).mean() / 2

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.T)):
            t = torch.full((n,), i / self.T)
            eps = net(x, t)
            mean = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            x = mean + (self.betas[i].sqrt() * torch.randn_like(x) if i else 0.0)
        return x


class Denoiser(nn.Module):
    def __init__(self, width, time_freqs):
        super().__init__()
        self.register_buffer("freqs", math.pi * 2.0 ** torch.arange(time_freqs))
        n_in = 2 + 2 * time_freqs
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, x, t):
        ang = t.unsqueeze(-1) * self.freqs
        return self.net(torch.cat([x, ang.sin(), ang.cos()], dim=-1))
