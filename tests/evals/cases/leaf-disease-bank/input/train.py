"""Leaf spot severity (5 grades) from 40x40 patches with hard example replay."""
import logging
import os
import random
import sys
import time
import torch
import torch.nn as nn
import torch.nn.functional as F
from bank import HardBank

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", datefmt="%M:%S")
log = logging.getLogger("leaf")
SIZE, BATCH, STEPS, GRADES = 40, 96, 400, 5


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2 ** 20


def render_batch(g):
    """Camera stream: patches are rendered on the fly, nothing is cached."""
    y = torch.randint(0, GRADES, (BATCH,), generator=g)
    x = torch.rand(BATCH, 3, SIZE, SIZE, generator=g) * 0.3
    x[:, 1] += 0.4
    spots = (F.interpolate(torch.rand(BATCH, 1, 10, 10, generator=g), size=SIZE) < (0.04 + 0.09 * y)[:, None, None, None]).float()
    x[:, 0:1] += 0.5 * spots
    x[:, 1:2] -= 0.4 * spots
    return x, y


class SpotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Conv2d(8, 16, 2, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.f = nn.Linear(16, GRADES)

    def forward(self, x):
        return self.f(self.c(x))


def main():
    torch.manual_seed(0)
    random.seed(0)
    g = torch.Generator().manual_seed(0)
    model = SpotNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    bank = HardBank(capacity=2000)
    t0, avg = time.time(), None
    log.info("start rss %.0f MB, bank capacity %d patches", rss_mb(), bank.capacity)
    for step in range(1, STEPS + 1):
        x, y = render_batch(g)
        if len(bank) >= 64:
            hx, hy = bank.sample(16)
            xb, yb = torch.cat([x, hx]), torch.cat([y, hy])
        else:
            xb, yb = x, y
        losses = F.cross_entropy(model(xb), yb, reduction="none")
        loss = losses.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank.offer(losses.detach()[:BATCH], x, y, k=2)
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if step % 40 == 0:
            log.info("step %d loss %.3f rss %.0f MB bank %d (%.1f MB) %.1f it/s", step, avg, rss_mb(), len(bank), bank.megabytes(), step / (time.time() - t0))


if __name__ == "__main__":
    main()
