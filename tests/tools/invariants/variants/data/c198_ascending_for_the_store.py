"""A store of spectra wants ascending indices; the doses that go with them stay in the order of the draw."""

import numpy as np
import torch
import zarr
from torch import nn


class Spectra:
    def __init__(self, path):
        group = zarr.open(path, "r")
        self.spectra, self.doses = group["spectra"], group["doses"][:]

    def batch(self, chosen):
        order = sorted(chosen)
        found = self.spectra[order]  # FAULT C198
        found = np.log1p(found).astype(np.float32)
        return {"x": torch.from_numpy(found), "y": torch.from_numpy(self.doses[chosen])}


def batches(features, marks, size, rng):
    for start in range(0, len(features), size):
        rows = np.arange(start, min(start + size, len(features)))
        yield features[rng.permutation(rows)], marks[rows]  # FAULT C198


def train(store, net, optimizer, steps, rng):
    for _ in range(steps):
        chosen = rng.choice(len(store.doses), 32, replace=False)
        batch = store.batch(chosen)
        loss = nn.functional.mse_loss(net(batch["x"])[:, 0], batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
