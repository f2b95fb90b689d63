import math
import torch
from torch import nn


class Schedule:
    def __init__(self, timesteps, beta_start, beta_end):
        self.T = timesteps
        self.beta = torch.linspace(beta_start, beta_end, timesteps)
        self.alpha = 1 - self.beta
        self.abar = torch.cumprod(self.alpha, 0)

    def noise(self, x0, t, eps):
        a = self.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

    @torch.no_grad()
    def sample(self, net, n, dim, gen):
        x = torch.randn(n, dim, generator=gen)
        for t in reversed(range(self.T)):
            tt = torch.full((n,), t)
            e = net(x, tt)
            x = (x - self.beta[t] / (1 - self.abar[t]).sqrt() * e) / self.alpha[t].sqrt()
            if t:
                var = self.beta[t] * (1 - self.abar[t - 1]) / (1 - self.abar[t])
                x = x + var.sqrt() * torch.randn(n, dim, generator=gen)
        return x


class EpsNet(nn.Module):
    def __init__(self, dim, width, depth, t_dim, T):
        super().__init__()
        self.T, self.t_dim = T, t_dim
        layers, i = [], dim + t_dim
        for _ in range(depth):
            layers += [nn.Linear(i, width), nn.SiLU()]
            i = width
        self.f = nn.Sequential(*layers, nn.Linear(i, dim))

    def forward(self, x, t):
        w = torch.exp(torch.arange(self.t_dim // 2) * (-math.log(1000) / (self.t_dim // 2)))
        a = t[:, None].float() * w
        return self.f(torch.cat([x, a.sin(), a.cos()], 1))
