import csv
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


def read_station(path):
    with open(path) as fh:
        rows = list(csv.DictReader(fh))
    return np.array([[float(r["rain_mm"]), float(r["level_m"])] for r in rows], dtype=np.float32)


class Windows(Dataset):
    """Windows of `history` hours; target is the level change over the next `horizon` hours."""

    def __init__(self, folder, split, history, horizon, val_fraction=0.25):
        self.history, self.horizon = history, horizon
        self.stations, self.series, self.index = [], [], []
        for path in sorted(Path(folder).glob("*.csv")):
            x = read_station(path)
            cut = int(len(x) * (1 - val_fraction))
            x = x[:cut] if split == "train" else x[cut:]
            k = len(self.series)
            self.stations.append(path.stem)
            self.series.append(torch.from_numpy(x))
            self.index += [(k, i) for i in range(len(x) - history - horizon + 1)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, n):
        k, i = self.index[n]
        x = self.series[k]
        past = x[i:i + self.history]
        future = x[i + self.history:i + self.history + self.horizon, 1]
        now = past[-1, 1]
        inp = torch.stack([past[:, 0] / 5.0, past[:, 1] - now], -1)
        return inp, future - now, k
