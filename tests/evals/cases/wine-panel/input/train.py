# wine quality panel: 11 lab values -> 5 grades (noisy human labels, few bottles)
import argparse
import json

import numpy as np
import torch
import torch.nn as nn


def bottles(n, seed):
    r = np.random.default_rng(seed)
    w = np.random.default_rng(0).normal(size=11)
    x = r.normal(size=(n, 11))
    score = x @ w / 3.3 + 0.9 * r.normal(size=n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(np.digitize(score, [-1.2, -0.4, 0.4, 1.2]))


class Panel(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        dims = [11, width, width, width]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.drop = nn.Dropout(p)
        self.grade = nn.Linear(width, 5)

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(torch.relu(layer(x)))
        return self.grade(x)


def report(panel, x, y, ce):
    panel.eval()
    with torch.no_grad():
        z = panel(x)
    return ce(z, y).item(), (z.argmax(1) == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=160)
    ap.add_argument("--dropout", type=float, default=0.6)
    ap.add_argument("--iters", type=int, default=3000)
    ap.add_argument("--eval-every", type=int, default=200)
    ap.add_argument("--lr", type=float, default=1e-3)
    a = ap.parse_args()
    torch.manual_seed(6)
    x, y = bottles(400, 1)
    xv, yv = bottles(600, 2)
    panel = Panel(a.width, a.dropout)
    ce = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(panel.parameters(), lr=a.lr)
    print(json.dumps(vars(a)))
    panel.train()
    for it in range(1, a.iters + 1):
        idx = torch.randint(0, len(x), (32,))
        loss = ce(panel(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % a.eval_every == 0:
            (tl, ta), (vl, va) = report(panel, x, y, ce), report(panel, xv, yv, ce)
            print(f"iter {it:5d}  batch {loss.item():.3f}  train {tl:.3f} ({ta:.1%})  valid {vl:.3f} ({va:.1%})", flush=True)


if __name__ == "__main__":
    main()
