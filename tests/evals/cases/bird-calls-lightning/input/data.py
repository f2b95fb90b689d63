"""Reads the recorder exports under shards/. Every shard holds features `x`, integer labels `y` and the names."""
import glob
import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


class Shard(TensorDataset):
    def __init__(self, path):
        z = np.load(path)
        self.path = path
        self.classes = [str(c) for c in z["classes"]]
        self.site, self.exporter = str(z["site"]), str(z["exporter"])
        super().__init__(torch.from_numpy(z["x"]).float(), torch.from_numpy(z["y"]).long())


def load_all(pattern="shards/*.npz"):
    shards = [Shard(p) for p in sorted(glob.glob(pattern))]
    n = {len(s.classes) for s in shards}
    assert len(n) == 1, "different number of species"
    for s in shards:
        counts = torch.bincount(s.tensors[1], minlength=len(s.classes)).tolist()
        print(f"{s.path}: {len(s)} calls from {s.site}, exporter {s.exporter}, per class {counts}")
    return shards


def loaders(shards, batch=64, val_frac=0.2, seed=0):
    full = ConcatDataset(shards)
    g = torch.Generator().manual_seed(seed)
    k = int(len(full) * val_frac)
    val, train = torch.utils.data.random_split(full, [k, len(full) - k], generator=g)
    return DataLoader(train, batch, shuffle=True, generator=g), DataLoader(val, 256)
