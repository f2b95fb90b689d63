"""Gesture recognition from IMU windows; logs activation statistics next to the loss."""
import time
from collections import defaultdict

import torch
import torch.nn as nn


def imu(n=4000, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 6, (n,), generator=g)
    t = torch.linspace(0, 1, 50)
    f = 1.0 + y[:, None, None].float()
    phase = torch.rand(n, 6, 1, generator=g) * 6.28
    return torch.sin(6.28 * f * t + phase) + 0.6 * torch.randn(n, 6, 50, generator=g), y


class GestureNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(6, width, 7, stride=2), nn.ReLU(), nn.Conv1d(width, width, 5, stride=2), nn.ReLU())
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(width * 9, 64), nn.ReLU(), nn.Linear(64, 6))

    def forward(self, x):
        return self.fc(self.conv(x))


class Monitor:
    """mean / std / share of zeros of each ReLU output"""

    def __init__(self):
        self.stats = {}

    def attach(self, model):
        def rec(name):
            def hook(mod, inp, out):
                o = out.detach()
                self.stats[name] = (o.mean().item(), o.std().item(), (o == 0).float().mean().item())
            return hook
        for name, m in model.named_modules():
            if isinstance(m, nn.ReLU):
                m.register_forward_hook(rec(name))

    def summary(self):
        return " ".join(f"{k}:{z:.2f}" for k, (_, _, z) in self.stats.items())


def train_step(model, opt, monitor, x, y):
    monitor.attach(model)
    t0 = time.perf_counter()
    loss = nn.functional.cross_entropy(model(x), y)
    t1 = time.perf_counter()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    t2 = time.perf_counter()
    opt.step()
    return loss.item(), {"fwd": t1 - t0, "bwd": t2 - t1, "opt": time.perf_counter() - t2}


def main(iters=360, bs=64, every=40):
    torch.manual_seed(5)
    x, y = imu()
    model, mon = GestureNet(), Monitor()
    opt = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    clock, tot, start = defaultdict(float), 0.0, time.perf_counter()
    for it in range(1, iters + 1):
        t = time.perf_counter()
        idx = torch.randint(0, len(x), (bs,))
        bx, by = x[idx], y[idx]
        clock["data"] += time.perf_counter() - t
        loss, tm = train_step(model, opt, mon, bx, by)
        for k, v in tm.items():
            clock[k] += v
        tot += loss
        if it % every == 0:
            ms = "  ".join(f"{k} {1000 * v / every:6.2f}ms" for k, v in clock.items())
            print(f"it {it:5d}  loss {tot / every:.4f}  {every / (time.perf_counter() - start):7.1f} it/s  | {ms} | zeros {mon.summary()}",
                  flush=True)
            clock.clear()
            tot, start = 0.0, time.perf_counter()


if __name__ == "__main__":
    main()
