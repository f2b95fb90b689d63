import csv
import json
import logging
import math
import random

import numpy as np
import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("bikes")

SEED = 3
EPOCHS = 30
BATCH = 128
LR = 3e-3
FEATURES = ["temp", "humidity", "wind", "hour", "capacity", "dist_center", "weekday"]
TARGET = "rentals"


def read_table(path):
    with open(path, newline="") as fh:
        rows = list(csv.DictReader(fh))
    return {k: np.array([float(r[k]) for r in rows], dtype=np.float32) for k in FEATURES + [TARGET]}


class Preprocessor:
    """Standardise with the stored statistics; outliers are cut at +-3 sigma."""

    def __init__(self, stats_file, clip=3.0):
        with open(stats_file) as fh:
            self.stats = json.load(fh)
        self.clip = clip

    def z(self, name, v):
        s = self.stats[name]
        return np.clip((v - s["mean"]) / s["std"], -self.clip, self.clip)

    def features(self, table):
        out = []
        for name in FEATURES:
            if name == "hour":
                a = table[name] / 24 * 2 * math.pi
                out += [np.sin(a), np.cos(a)]
            elif name == "weekday":
                out.append((table[name] < 5).astype(np.float32))
            else:
                out.append(self.z(name, table[name]))
        return torch.tensor(np.stack(out, 1), dtype=torch.float32)

    def target(self, table):
        s = self.stats[TARGET]
        return torch.tensor((table[TARGET] - s["mean"]) / s["std"], dtype=torch.float32)

    def to_units(self, z):
        s = self.stats[TARGET]
        return z * s["std"] + s["mean"]


def r2(pred, true):
    return 1 - ((pred - true) ** 2).sum().item() / ((true - true.mean()) ** 2).sum().item()


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    prep = Preprocessor("data/stats.json")
    tr, va = read_table("data/train.csv"), read_table("data/val.csv")
    xtr, ytr = prep.features(tr), prep.target(tr)
    xva, yva = prep.features(va), prep.target(va)
    log.info("train %s  val %s", tuple(xtr.shape), tuple(xva.shape))

    model = nn.Sequential(
        nn.Linear(xtr.shape[1], 96), nn.GELU(),
        nn.Linear(96, 96), nn.GELU(),
        nn.Linear(96, 1),
    )
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS, eta_min=1e-4)
    loss_fn = nn.MSELoss()

    for ep in range(EPOCHS):
        model.train()
        perm = torch.randperm(len(xtr))
        total = 0.0
        for i in range(0, len(perm), BATCH):
            idx = perm[i:i + BATCH]
            opt.zero_grad()
            loss = loss_fn(model(xtr[idx]).squeeze(1), ytr[idx])
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        model.eval()
        with torch.no_grad():
            p = model(xva).squeeze(1)
        mae = (prep.to_units(p) - prep.to_units(yva)).abs().mean().item()
        if ep % 3 == 2 or ep == 0:
            log.info("epoch %02d  train mse %.4f  val mse %.4f  val MAE %.2f bikes  R2 %.3f  lr %.1e",
                     ep + 1, total / len(xtr), loss_fn(p, yva).item(), mae, r2(p, yva), sched.get_last_lr()[0])


if __name__ == "__main__":
    main()
