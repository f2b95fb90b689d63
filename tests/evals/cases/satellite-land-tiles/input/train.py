"""Land-use classification of multispectral tiles."""
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ("forest", "field", "urban", "water")


class TileArchive:
    """Stand-in for the tile store: returns (bands, cloud_fraction)."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def read(self, i):
        rng = np.random.default_rng(self.seed * 100003 + i)
        label = i % len(CLASSES)
        mean = np.array([[.1, .5, .2, .6], [.3, .5, .2, .5], [.5, .4, .5, .3], [.1, .1, .3, .05]])[label]
        bands = mean[:, None, None] + 0.08 * rng.standard_normal((4, 24, 24))
        return bands.astype(np.float32), label, rng.beta(1, 14)


class TileDataset(Dataset):
    def __init__(self, archive, max_cloud=0.3):
        self.archive, self.max_cloud = archive, max_cloud

    def __len__(self):
        return self.archive.n

    def __getitem__(self, i):
        bands, label, cloud = self.archive.read(i)
        if cloud > self.max_cloud:
            return None
        return {"bands": torch.from_numpy(bands), "label": label, "tile": f"T{i:05d}"}


def build_net():
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, len(CLASSES)))


def main():
    random.seed(0)
    torch.manual_seed(0)
    ds = TileDataset(TileArchive(800, seed=5))
    dl = DataLoader(ds, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    net, seen = build_net(), 0
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        for it, batch in enumerate(dl):
            loss = nn.functional.cross_entropy(net(batch["bands"]), batch["label"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += len(batch["tile"])
            print({"epoch": epoch, "iter": it, "loss": round(loss.item(), 4), "tiles_seen": seen}, flush=True)


if __name__ == "__main__":
    main()
