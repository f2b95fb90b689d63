import argparse
import csv
import json

import numpy as np
import torch
import torch.nn as nn


def spectra(n, seed):
    """Vibration energy per band: log-normal, a few strips shake far more than the others."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(0).normal(size=(6, 40))
    latent = rng.normal(size=(n, 6))
    severity = rng.lognormal(0.0, 0.8, size=(n, 1))
    x = severity * (np.tanh(latent @ mix / 2) + 0.15 * rng.normal(size=(n, 40))) + 0.4 * severity
    y = latent[:, 0] * 0.8 + np.sin(latent[:, 1]) - 0.5 * latent[:, 2] * latent[:, 3] / 2
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def dense(n_in, n_out, s):
    return [
        nn.Linear(n_in, n_out, bias=False),
        nn.BatchNorm1d(n_out, eps=s["bn_epsilon"], momentum=s["bn_momentum"]),
        nn.ReLU(),
    ]


def build_regressor(s, n_in=40):
    blocks = []
    for units in s["units"]:
        blocks += dense(n_in, units, s)
        n_in = units
    return nn.Sequential(*blocks, nn.Linear(n_in, 1))


def glorot(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        if m.bias is not None:
            nn.init.zeros_(m.bias)


def minibatches(x, y, size, gen):
    order = torch.randperm(len(x), generator=gen)
    for i in range(0, len(x) - size + 1, size):
        idx = order[i:i + size]
        yield x[idx], y[idx]


def evaluate(regressor, x, y):
    regressor.eval()
    with torch.no_grad():
        err = regressor(x).squeeze(1) - y
    return err.square().mean().item(), err.abs().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--settings", default="settings.json")
    s = json.load(open(ap.parse_args().settings))
    torch.manual_seed(s["seed"])
    gen = torch.Generator().manual_seed(s["seed"])

    x, y = spectra(2400, 1)
    xv, yv = spectra(600, 2)
    regressor = build_regressor(s)
    regressor.apply(glorot)
    adam = torch.optim.Adam(regressor.parameters(), lr=s["learning_rate"], eps=1e-7)
    rows = csv.writer(open("fit.csv", "w", newline=""))
    rows.writerow(["epoch", "mse", "val_mse", "val_mae"])

    for epoch in range(1, s["epochs"] + 1):
        regressor.train()
        running, count = 0.0, 0
        for xb, yb in minibatches(x, y, s["batch_size"], gen):
            adam.zero_grad()
            mse = (regressor(xb).squeeze(1) - yb).square().mean()
            mse.backward()
            adam.step()
            running += mse.item()
            count += 1
        val_mse, val_mae = evaluate(regressor, xv, yv)
        rows.writerow([epoch, f"{running / count:.5f}", f"{val_mse:.5f}", f"{val_mae:.5f}"])
        print(f"Epoch {epoch}/{s['epochs']} - mse: {running / count:.4f} - val_mse: {val_mse:.4f} - val_mae: {val_mae:.4f}", flush=True)


if __name__ == "__main__":
    main()
