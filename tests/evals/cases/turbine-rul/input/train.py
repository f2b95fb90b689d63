#!/usr/bin/env python3
"""Remaining useful life of turbines from sensor snapshots (MLP, Huber)."""
import csv
import io
import random

import numpy as np
import torch
import torch.nn as nn

COLS = ["t_in", "t_out", "p_in", "p_out", "rpm", "vib_x", "vib_y", "oil"]


def export_csv(n=2200, seed=9):
    """Stands for the historian export: one line per snapshot, empty cell when a sensor was offline."""
    rnd = random.Random(seed)
    buf = io.StringIO()
    w = csv.writer(buf)
    w.writerow(COLS + ["rul"])
    for _ in range(n):
        age = rnd.random()
        row = [20 + 5 * rnd.gauss(0, 1), 480 + 60 * age + 8 * rnd.gauss(0, 1), 1 + 0.02 * rnd.gauss(0, 1),
               14 - 2 * age + 0.2 * rnd.gauss(0, 1), 3000 + 30 * rnd.gauss(0, 1), 1 + 2 * age ** 2 + 0.2 * rnd.gauss(0, 1),
               1 + age + 0.2 * rnd.gauss(0, 1), 60 + 10 * age + 2 * rnd.gauss(0, 1)]
        cells = [f"{v:.4f}" for v in row]
        if rnd.random() < 0.0006:
            cells[rnd.randrange(8)] = ""
        w.writerow(cells + [f"{125 * (1 - age):.1f}"])
    buf.seek(0)
    return buf


def load():
    table = np.genfromtxt(export_csv(), delimiter=",", skip_header=1, dtype=np.float32)
    x, y = table[:, :-1], table[:, -1:]
    mu, sd = np.nanmean(x, 0), np.nanstd(x, 0)
    return torch.from_numpy((x - mu) / sd), torch.from_numpy(y / 125)


def main():
    torch.manual_seed(0)
    x, y = load()
    print("loaded", tuple(x.shape), "columns", ",".join(COLS))
    net = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    huber = nn.HuberLoss(delta=0.2)
    gen = torch.Generator().manual_seed(10)
    for epoch in range(5):
        for i, idx in enumerate(torch.randperm(len(x), generator=gen).split(20)):
            pred = net(x[idx])
            objective = huber(pred, y[idx])
            opt.zero_grad()
            objective.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 10.0)
            opt.step()
            if i % 10 == 9:
                print(f"Train Epoch: {epoch} [{(i + 1) * 20}/{len(x)} ({100 * (i + 1) * 20 / len(x):.0f}%)]\t"
                      f"Objective: {objective.item():.6f}\tgrad-norm: {norm.item():.4f}")


if __name__ == "__main__":
    main()
