"""Normalising flow (RealNVP) for the density of detector events with four coordinates."""
import argparse
import math

import numpy as np
import torch
from torch import nn


def events(n, rng):
    """Hits in metres: a helix-like track with small measurement noise."""
    t = rng.uniform(0.0, 2.5, n)
    r = 0.20 + 0.02 * rng.normal(size=n)
    x = r * np.cos(1.7 * t)
    y = r * np.sin(1.7 * t)
    z = 0.12 * t + 0.01 * rng.normal(size=n)
    e = 0.05 * np.exp(0.4 * rng.normal(size=n)) * (1 + 0.3 * t)
    return torch.tensor(np.stack([x, y, z, e], 1), dtype=torch.float32)


class Coupling(nn.Module):
    def __init__(self, dim, mask, hidden):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * dim))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, -1)
        s = 2.0 * torch.tanh(s / 2.0) * (1 - self.mask)
        t = t * (1 - self.mask)
        return x * torch.exp(s) + t, s.sum(-1)


class Flow(nn.Module):
    def __init__(self, train, layers=8, hidden=48):
        super().__init__()
        dim = train.shape[1]
        self.register_buffer("mean", train.mean(0))
        self.register_buffer("std", train.std(0))
        gen = torch.Generator().manual_seed(0)
        masks = []
        for _ in range(layers // 2):
            m = torch.zeros(dim)
            m[torch.randperm(dim, generator=gen)[: dim // 2]] = 1.0
            masks += [m, 1 - m]
        self.layers = nn.ModuleList(Coupling(dim, m, hidden) for m in masks)

    def log_prob(self, x):
        z = (x - self.mean) / self.std
        logdet = -self.std.log().sum()
        for layer in self.layers:
            z, ld = layer(z)
            logdet = logdet + ld
        base = -0.5 * (z ** 2).sum(-1) - 0.5 * z.shape[1] * math.log(2 * math.pi)
        return base + logdet


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=6000)
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=4)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    train, val = events(a.n, rng), events(2000, rng)
    flow = Flow(train)
    opt = torch.optim.AdamW(flow.parameters(), lr=a.lr, weight_decay=1e-5)
    steps = a.epochs * math.ceil(len(train) / a.batch)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, a.lr, total_steps=steps, pct_start=0.1)

    # reference: one full-covariance Gaussian
    g = torch.distributions.MultivariateNormal(train.mean(0), torch.cov(train.T))
    print(f"gaussian reference: val nll {-g.log_prob(val).mean():.4f} nats")
    for epoch in range(1, a.epochs + 1):
        flow.train()
        total = 0.0
        for idx in torch.randperm(len(train)).split(a.batch):
            loss = -flow.log_prob(train[idx]).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            opt.step()
            sched.step()
            total += loss.item() * len(idx)
        flow.eval()
        with torch.no_grad():
            v = -flow.log_prob(val).mean().item()
        print(f"epoch {epoch:2d}  lr {sched.get_last_lr()[0]:.2e}  train loss {total / len(train):+.4f}  val loss {v:+.4f}", flush=True)
    torch.save(flow.state_dict(), "flow.pt")


if __name__ == "__main__":
    main()
