"""1-D CNN: photon-count spectrum -> three concentrations."""
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import SpectraDataset

EPOCHS, BATCH, LR = 2, 64, 2e-3


def build():
    return nn.Sequential(
        nn.Unflatten(1, (1, 640)),
        nn.Conv1d(1, 8, 9, stride=4, padding=4), nn.ReLU(),
        nn.Conv1d(8, 16, 9, stride=4, padding=4), nn.ReLU(),
        nn.Flatten(), nn.Linear(640, 64), nn.ReLU(), nn.Linear(64, 3))


def main():
    torch.manual_seed(0)
    paths = sorted(Path("shards").glob("run_*.npz"))
    train, val = SpectraDataset(paths[:-1]), SpectraDataset(paths[-1:])
    # single process: the shards are small
    train_loader = DataLoader(train, batch_size=BATCH, shuffle=True)
    val_loader = DataLoader(val, batch_size=BATCH)
    model = build()
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    print(f"{len(train)} training spectra in {len(train.shards)} shards, {len(val)} validation spectra; "
          f"{sum(p.stat().st_size for p in paths) / 1024:.0f} KiB on disk")

    for epoch in range(1, EPOCHS + 1):
        fetch = compute = total = 0.0
        mark = time.perf_counter()
        for x, y in train_loader:
            now = time.perf_counter()
            fetch += now - mark
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
            mark = time.perf_counter()
            compute += mark - now
        model.eval()
        with torch.no_grad():
            se = sum(((model(x) - y) ** 2).sum().item() for x, y in val_loader)
        model.train()
        rate = len(train) / (fetch + compute)
        print(f"epoch {epoch}  train mse {total / len(train):.5f}  val mse {se / (3 * len(val)):.5f}  "
              f"waiting for data {fetch:.2f} s  compute {compute:.2f} s  {rate:.0f} spectra/s", flush=True)


if __name__ == "__main__":
    main()
