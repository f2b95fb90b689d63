"""Binding affinity regression, large effective batch through accumulation."""
import argparse
import time
import torch
import torch.nn as nn


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--micro", type=int, default=16)
    p.add_argument("--accum", type=int, default=4)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--log-interval", type=int, default=40)
    return p.parse_args()


class Affinity(nn.Module):
    def __init__(self):
        super().__init__()
        self.lig, self.pocket = nn.Linear(24, 32), nn.Linear(18, 32)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, a, b):
        return self.head(torch.cat([self.lig(a), self.pocket(b)], -1)).squeeze(-1)


def complexes(n, seed=20):
    g = torch.Generator().manual_seed(seed)
    a, b = torch.randn(n, 24, generator=g), torch.randn(n, 18, generator=g)
    u, v = torch.randn(24, 3, generator=g) / 5, torch.randn(18, 3, generator=g) / 4
    return a, b, ((a @ u) * (b @ v)).sum(-1) + (a @ u)[:, 0] + 0.1 * torch.randn(n, generator=g)


def main():
    o = options()
    torch.manual_seed(20)
    a, b, y = complexes(2560)
    model = Affinity()
    opt = torch.optim.SGD(model.parameters(), lr=o.lr)
    start, seen, window = time.time(), 0, 0.0
    for epoch in range(1, o.epochs + 1):
        opt.zero_grad(set_to_none=True)
        for i, idx in enumerate(torch.randperm(len(y)).split(o.micro)):
            mse = (model(a[idx], b[idx]) - y[idx]).square().mean()
            (mse / o.accum).backward()
            window += mse.item()
            if (i + 1) % o.accum == 0:
                opt.step()
            seen += 1
            if seen % o.log_interval == 0:
                print(f"| epoch {epoch:3d} | {i + 1:4d}/{len(y) // o.micro} micro-batches | lr {o.lr:02.2f} | "
                      f"ms/batch {(time.time() - start) * 1000 / seen:5.2f} | mse {window / o.log_interval:9.3f}")
                window = 0.0


if __name__ == "__main__":
    main()
