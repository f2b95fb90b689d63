import argparse
import os

import torch
from torch import nn, optim

DIM = 10


class Surrogate(nn.Module):
    def __init__(self, hidden=64, depth=2):
        super().__init__()
        layers, width = [], DIM
        for _ in range(depth):
            layers += [nn.Linear(width, hidden), nn.SiLU()]
            width = hidden
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.trunk(x)).flatten()


def simulator(x, fidelity):
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3].abs()
    if fidelity == "high":
        y = y + 0.8 * torch.cos(3 * x[:, 4]) + 0.6 * x[:, 5] ** 2
    return y


def sample(n, fidelity, gen):
    x = torch.rand(n, DIM, generator=gen) * 2 - 1
    return x, simulator(x, fidelity)


def low_fidelity_checkpoint(path, gen):
    """What the nightly job leaves behind: a surrogate fitted to the cheap simulator."""
    net = Surrogate()
    sgd = optim.Adam(net.parameters(), 3e-3)
    x, y = sample(4000, "low", gen)
    for i in range(250):
        rows = torch.randint(0, len(x), (256,), generator=gen)
        err = nn.functional.mse_loss(net(x[rows]), y[rows])
        sgd.zero_grad()
        err.backward()
        sgd.step()
    torch.save({"state": net.state_dict(), "mse": err.item()}, path)
    print(f"low-fidelity surrogate written to {path}, mse {err.item():.4f}")


def build(args):
    net = Surrogate()
    updater = optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-3)
    if args.init_from:
        blob = torch.load(args.init_from, mmap=True, weights_only=True)
        missing, unexpected = net.load_state_dict(blob["state"], strict=False, assign=True)
        print(f"warm start from {args.init_from}: missing {missing} unexpected {unexpected}")
    return net, updater


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--init-from", default="lowfi.pt")
    cli.add_argument("--lr", type=float, default=4e-3)
    cli.add_argument("--epochs", type=int, default=12)
    args = cli.parse_args()
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(123)
    if not os.path.exists(args.init_from):
        low_fidelity_checkpoint(args.init_from, gen)

    x, y = sample(1500, "high", gen)
    xv, yv = sample(500, "high", gen)
    net, updater = build(args)
    for n, p in net.named_parameters():
        assert p.requires_grad, n
    for epoch in range(args.epochs):
        perm, acc = torch.randperm(len(x), generator=gen), 0.0
        for rows in perm.split(100):
            err = nn.functional.mse_loss(net(x[rows]), y[rows])
            updater.zero_grad()
            err.backward()
            gnorm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            updater.step()
            acc += err.item() * len(rows)
        with torch.no_grad():
            val = nn.functional.mse_loss(net(xv), yv).item()
        print(f"[{epoch:02d}] fit mse {acc / len(x):.5f}  val mse {val:.5f}  grad norm {gnorm:.3f}")


if __name__ == "__main__":
    main()
