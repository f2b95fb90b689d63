#!/usr/bin/env python
"""Fine-tune a tiny conv encoder on 340 labelled spectrogram crops (effective batch 512)."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--micro-batch", type=int, default=32)
    p.add_argument("--effective-batch", type=int, default=512)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--seed", type=int, default=6)
    return p.parse_args()


class Crops:
    """Random chirps: falling, rising or flat."""

    def __init__(self, n, seed):
        g = np.random.default_rng(seed)
        self.y = g.integers(0, 3, n)
        self.x = g.normal(0, 0.6, (n, 1, 16, 16)).astype(np.float32)
        cols = np.arange(16)
        for i, lab in enumerate(self.y):
            slope = (lab - 1) * g.uniform(0.4, 0.8)
            rows = np.clip(8 + g.integers(-3, 4) + slope * (cols - 8), 0, 15).astype(int)
            self.x[i, 0, rows, cols] += 2.0

    def batches(self, size, rng=None):
        order = np.arange(len(self.y)) if rng is None else rng.permutation(len(self.y))
        for a in range(0, len(order), size):
            ids = order[a:a + size]
            yield torch.from_numpy(self.x[ids]), torch.from_numpy(self.y[ids])

    def n_batches(self, size):
        return math.ceil(len(self.y) / size)


def encoder():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 16, 3),
    )


@torch.no_grad()
def score(enc, crops):
    hits = sum((enc(x).argmax(1) == y).sum().item() for x, y in crops.batches(128))
    return hits / len(crops.y)


def main():
    a = get_args()
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    train, dev = Crops(340, 0), Crops(200, 1)
    enc = encoder()
    optim = torch.optim.AdamW(enc.parameters(), lr=a.lr)
    accumulate = a.effective_batch // a.micro_batch
    print(f"train crops {len(train.y)}, micro-batches per epoch {train.n_batches(a.micro_batch)}, accumulate {accumulate}")
    for epoch in range(a.epochs):
        optim.zero_grad()
        seen = []
        for i, (x, y) in enumerate(train.batches(a.micro_batch, rng)):
            xe = F.cross_entropy(enc(x), y)
            (xe / accumulate).backward()
            seen.append(xe.item())
            if (i + 1) % accumulate == 0:
                optim.step()
                optim.zero_grad()
        if epoch % 4 == 3:
            grad = sum(p.grad.norm().item() ** 2 for p in enc.parameters() if p.grad is not None) ** 0.5
            print(f"epoch {epoch + 1:3d}  train xe {np.mean(seen):.4f}  dev acc {score(enc, dev):.3f}  grad {grad:.3f}")


if __name__ == "__main__":
    main()
