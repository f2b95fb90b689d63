"""Load forecaster for a district heating grid (sequence mixer). Prints the resident memory after each epoch."""
import csv
import os
from collections import deque
from dataclasses import dataclass

import psutil
import torch
from torch import nn


@dataclass
class Settings:
    windows: int = 320
    val_windows: int = 320
    length: int = 96
    channels: int = 8
    width: int = 96
    depth: int = 2
    batch: int = 64
    epochs: int = 6
    lr: float = 1e-3


class MixerLayer(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.time = nn.Linear(length, length)
        self.chan = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.time(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.inp = nn.Linear(s.channels, s.width)
        self.layers = nn.Sequential(*[MixerLayer(s.length, s.width) for _ in range(s.depth)])
        self.out = nn.Linear(s.width, 1)

    def forward(self, x):
        return self.out(self.layers(self.inp(x)).mean(1)).squeeze(-1)


class History:
    def __init__(self):
        self.rows = []
        self.recent = deque(maxlen=50)

    def add(self, **kw):
        self.rows.append(kw)

    def best(self, key):
        return min(r[key] for r in self.rows)

    def to_csv(self, path):
        with open(path, "w", newline="") as f:
            w = csv.DictWriter(f, fieldnames=list(self.rows[0]))
            w.writeheader()
            w.writerows({k: f"{v:.5f}" for k, v in r.items()} for r in self.rows)


def make(n, s, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, s.length, s.channels, generator=g).cumsum(1) * 0.15
    y = x[:, -12:, 0].mean(1) - 0.5 * x[:, :, 1].mean(1) + 0.05 * torch.randn(n, generator=g)
    return x, y


def validate(model, data, s):
    model.eval()
    total = 0.0
    for x, y in zip(data[0].split(s.batch), data[1].split(s.batch)):
        total += nn.functional.l1_loss(model(x), y) * len(y)
    model.train()
    return total / len(data[1])


def rss():
    return psutil.Process(os.getpid()).memory_info().rss / 2 ** 20


def main():
    s = Settings()
    torch.manual_seed(9)
    train, val = make(s.windows, s, 0), make(s.val_windows, s, 1)
    model, hist = Mixer(s), History()
    opt = torch.optim.Adam(model.parameters(), lr=s.lr)
    print(f"start rss={rss():.0f}MiB params={sum(p.numel() for p in model.parameters())}")
    for ep in range(1, s.epochs + 1):
        for idx in torch.randperm(s.windows).split(s.batch):
            loss = nn.functional.l1_loss(model(train[0][idx]), train[1][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            hist.recent.append(loss.item())
        hist.add(epoch=ep, train_mae=sum(hist.recent) / len(hist.recent), val_mae=validate(model, val, s))
        r = hist.rows[-1]
        print(f"epoch={ep} train_mae={r['train_mae']:.4f} val_mae={r['val_mae']:.4f} best={hist.best('val_mae'):.4f} rss={rss():.0f}MiB",
              flush=True)
        hist.to_csv("history.csv")


if __name__ == "__main__":
    main()
