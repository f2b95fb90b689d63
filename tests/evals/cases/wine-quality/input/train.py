"""Wine quality regression, SGD with warm restarts (SGDR)."""
import csv
import sys

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

CFG = {"T_0": 8, "T_mult": 2, "epochs": 56, "lr_max": 0.08, "lr_min": 1e-4, "batch": 64, "seed": 0}


def wines(n=1600, seed=2):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    x = np.concatenate([z @ rng.normal(size=(3, 8)) + 0.3 * rng.normal(size=(n, 8)), rng.normal(size=(n, 3))], 1)
    q = 5.6 + 0.8 * np.tanh(z[:, 0] * z[:, 1]) + 0.5 * np.sin(2 * z[:, 2]) + 0.25 * rng.normal(size=n)
    x = (x - x[:1200].mean(0)) / x[:1200].std(0)
    mu, sd = q[:1200].mean(), q[:1200].std()
    return [torch.tensor(a, dtype=torch.float32) for a in (x[:1200], (q[:1200] - mu) / sd, x[1200:], (q[1200:] - mu) / sd)]


def main():
    torch.manual_seed(CFG["seed"])
    xt, yt, xv, yv = wines()
    net = nn.Sequential(nn.Linear(11, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
    opt = torch.optim.SGD(net.parameters(), lr=CFG["lr_max"], momentum=0.9, weight_decay=1e-4)
    per_epoch = -(-len(xt) // CFG["batch"])
    sched = CosineAnnealingWarmRestarts(opt, T_0=CFG["T_0"], T_mult=CFG["T_mult"], eta_min=CFG["lr_min"])
    w = csv.writer(open("metrics.csv", "w"))
    w.writerow(["epoch", "train_mse", "val_mse", "lr"])
    print(f"{'ep':>3} {'train_mse':>10} {'val_mse':>10} {'lr':>10}")
    print("-" * 36)
    for ep in range(CFG["epochs"]):
        net.train()
        tot = 0.0
        for k, idx in enumerate(torch.randperm(len(xt)).split(CFG["batch"])):
            mse = nn.functional.mse_loss(net(xt[idx]), yt[idx])
            opt.zero_grad()
            mse.backward()
            opt.step()
            sched.step(ep + (k + 1) / per_epoch)
            tot += mse.item() * len(idx)
        net.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(net(xv), yv).item()
        lr = opt.param_groups[0]["lr"]
        w.writerow([ep, tot / len(xt), val, lr])
        print(f"{ep:3d} {tot / len(xt):10.4f} {val:10.4f} {lr:10.2e}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
