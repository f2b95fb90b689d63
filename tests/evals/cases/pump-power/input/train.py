"""Online pump model: pressure/flow/temperature history -> power draw in the next minute.

First call trains from scratch, a second call continues from ckpt/last.pt (nightly job).
"""
import os
import sys

import torch
from torch import nn

CKPT = "ckpt/last.pt"
SCALE = torch.tensor([310.0, 42.0, 61.0, 1480.0, 5.5, 0.8])
SPREAD = torch.tensor([9.0, 3.0, 2.5, 30.0, 0.4, 0.15])


class RunningNorm:
    """Streaming mean / variance, Chan et al. update."""

    def __init__(self, dim, clip=8.0):
        self.count = 1e-4
        self.mean = torch.zeros(dim)
        self.m2 = torch.ones(dim) * 1e-4
        self.clip = clip

    def update(self, x):
        n, mean = len(x), x.mean(0)
        delta = mean - self.mean
        total = self.count + n
        self.m2 += ((x - mean) ** 2).sum(0) + delta**2 * self.count * n / total
        self.mean += delta * n / total
        self.count = total

    def __call__(self, x):
        std = (self.m2 / self.count).sqrt().clamp_min(1e-6)
        return ((x - self.mean) / std).clamp(-self.clip, self.clip)


class Stream:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.w = torch.tensor([0.9, -0.7, 0.3, 1.1, -0.4, 0.2])

    def minute(self, n=64):
        z = torch.randn(n, 6, generator=self.g)
        power = torch.tanh(z @ self.w) + 0.4 * z[:, 0] * z[:, 3] + 0.05 * torch.randn(n, generator=self.g)
        return SCALE + SPREAD * z, power


class PowerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def save(minute, model, optimizer, schedule):
    os.makedirs("ckpt", exist_ok=True)
    torch.save({"minute": minute, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(), "rng": torch.get_rng_state()}, CKPT)


def run(until):
    torch.manual_seed(1)
    model = PowerModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9985)
    norm = RunningNorm(6)
    start = 0
    if os.path.exists(CKPT):
        state = torch.load(CKPT)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])
        start = state["minute"]
        print(f"continuing from {CKPT} at minute {start}, lr {schedule.get_last_lr()[0]:.6f}")
    stream = Stream(seed=start + 10)
    window = []
    for minute in range(start + 1, until + 1):
        x, power = stream.minute()
        if minute % 10 == 0:  # statistics are refreshed from every tenth minute
            norm.update(x)
        error = (model(norm(x)) - power).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        schedule.step()
        window.append(error.item())
        if minute % 25 == 0:
            print(f"minute {minute:4d} mse {sum(window) / len(window):.4f} lr {schedule.get_last_lr()[0]:.6f}")
            window.clear()
    save(until, model, optimizer, schedule)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(int(sys.argv[1]))
    else:
        run(500)
        print("-- restart --")
        run(700)
