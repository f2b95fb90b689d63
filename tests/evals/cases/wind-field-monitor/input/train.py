import os
import time

import torch
import torch.nn as nn

from fields import WindFields

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * PAGE / 2**20


class Sharpener(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(2, c, 3, padding=1), nn.SiLU(),
            nn.Conv2d(c, c, 3, padding=1), nn.SiLU(),
            nn.Conv2d(c, 2, 3, padding=1),
        )

    def forward(self, x):
        return x + self.net(x)


class Smoothed:
    """Exponentially smoothed monitor value."""

    def __init__(self, keep=0.98):
        self.keep = keep
        self.value = None

    def feed(self, v):
        self.value = v if self.value is None else self.keep * self.value + (1 - self.keep) * v

    def __format__(self, spec):
        return format(float(self.value), spec)


def train_step(model, optimiser, x, y):
    loss = nn.functional.l1_loss(model(x), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


def main():
    torch.manual_seed(31)
    source, control = WindFields(1), WindFields(2)
    model = Sharpener()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    fit, held = Smoothed(), Smoothed()
    start = time.time()
    for it in range(1, 421):
        x, y = source.batch(8)
        fit.feed(train_step(model, optimiser, x, y))
        xc, yc = control.batch(4)
        model.eval()
        held.feed(nn.functional.l1_loss(model(xc), yc))
        model.train()
        if it % 30 == 0:
            rate = it / (time.time() - start)
            print(f"it {it:4d}  l1 {fit:.4f}  control l1 {held:.4f}  rss {resident_mb():.0f} MB  {rate:.1f} it/s")


if __name__ == "__main__":
    main()
