import logging
import math
import sys

import torch
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname).1s] %(message)s")
log = logging.getLogger()


def load_curve(n, g):
    """Electric load by hour of the day; the spread depends on the hour and is tiny at night."""
    h = torch.rand(n, 1, generator=g) * 24
    mean = 0.5 + 0.3 * torch.sin(2 * math.pi * (h - 8) / 24)
    std = 0.01 + 0.05 * torch.exp(-((h - 18) / 4) ** 2)
    return h, mean + std * torch.randn(n, 1, generator=g), mean, std


class GaussianHead(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.SiLU(), nn.Dropout(0.02), nn.Linear(width, width), nn.SiLU())
        self.mu, self.raw = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, h):
        a = 2 * math.pi * h / 24
        z = self.body(torch.cat([a.sin(), a.cos(), (2 * a).sin(), (2 * a).cos()], 1))
        return self.mu(z), nn.functional.softplus(self.raw(z)) + 1e-3


def nll(mu, sd, y):
    return (sd.log() + 0.5 * ((y - mu) / sd) ** 2 + 0.5 * math.log(2 * math.pi)).mean()


def main():
    torch.manual_seed(2)
    g = torch.Generator().manual_seed(2)
    h, y, _, _ = load_curve(3000, g)
    hv, yv, mv, sv = load_curve(1000, g)
    net = GaussianHead()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
    for epoch in range(20):
        net.train()
        tot = 0.0
        for i in torch.randperm(3000, generator=g).split(64):
            loss = nll(*net(h[i]), y[i])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            tot += loss.item() * len(i) / 3000
        sched.step()
        net.eval()
        with torch.no_grad():
            mu, sd = net(hv)
            v, cover = nll(mu, sd, yv).item(), ((yv - mu).abs() < 1.96 * sd).float().mean().item()
        log.info("epoch %d nll %.3f val_nll %.3f coverage95 %.3f", epoch, tot, v, cover)
    log.info("val nll under the true density %.3f", nll(mv, sv, yv).item())


if __name__ == "__main__":
    main()
