"""Predictive density of river discharge: mixture of Gaussians on log discharge."""
import argparse
import csv
import math

import numpy as np
import torch
from torch import nn


class MixtureNet(nn.Module):
    def __init__(self, inputs, components, hidden=48):
        super().__init__()
        self.k = components
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.params = nn.Linear(hidden, 3 * components)

    def forward(self, x):
        logit, mu, s = self.params(self.body(x)).chunk(3, -1)
        return torch.log_softmax(logit, -1), mu, nn.functional.softplus(s) + 1e-3


def nll(out, y):
    logw, mu, sigma = out
    z = (y[:, None] - mu) / sigma
    logp = logw - 0.5 * z * z - sigma.log() - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(logp, -1)


def cdf(out, y):
    logw, mu, sigma = out
    return (logw.exp() * 0.5 * (1 + torch.erf((y[:, None] - mu) / (sigma * math.sqrt(2))))).sum(-1)


def read(path):
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    x = np.array([[float(r[k]) for k in ("rain_1d", "rain_3d", "snow", "temp", "prev_log_q")] for r in rows], dtype=np.float32)
    return torch.from_numpy(x), torch.tensor([float(r["log_q"]) for r in rows])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--components", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=24)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(70)
    x, y = read("river_train.csv")
    xv, yv = read("river_val.csv")
    mean, std = x.mean(0), x.std(0)
    x, xv = (x - mean) / std, (xv - mean) / std
    net = MixtureNet(x.shape[1], args.components)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    print(f"{len(x)} days, target log discharge, std {y.std():.3f}", flush=True)
    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(25):
            loss = nll(net(x[idx]), y[idx]).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            total += loss.item() * len(idx)
        net.eval()
        if epoch % 2 == 1:
            with torch.no_grad():
                out = net(xv)
                pit = cdf(out, yv)
                cover = ((pit > 0.05) & (pit < 0.95)).float().mean().item()
            print(f"epoch {epoch:2d}  train nll {total / len(x):+.4f}  val nll {nll(out, yv).mean().item():+.4f}  "
                  f"smallest sigma {out[2].min().item():.3f}  90% interval covers {100 * cover:.0f}%", flush=True)


if __name__ == "__main__":
    main()
