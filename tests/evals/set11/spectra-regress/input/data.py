from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class Shard:
    """One acquisition run: photon counts (n, 640) and the three concentrations (n, 3)."""

    def __init__(self, path):
        self.path = Path(path)
        self.archive = np.load(self.path)
        self.size = len(self.archive["conc"])

    def __len__(self):
        return self.size

    def row(self, i):
        return self.archive["counts"][i], self.archive["conc"][i]


class SpectraDataset(Dataset):
    def __init__(self, paths, scale=0.1):
        self.shards = [Shard(p) for p in paths]
        self.ends = list(accumulate(len(s) for s in self.shards))
        self.scale = scale

    def __len__(self):
        return self.ends[-1]

    def __getitem__(self, n):
        k = bisect_right(self.ends, n)
        counts, conc = self.shards[k].row(n - (self.ends[k - 1] if k else 0))
        return torch.from_numpy(np.sqrt(counts) * self.scale), torch.from_numpy(conc)
