import os

import numpy as np
import torch
from torch.utils.data import Dataset

FILES, PER_FILE, GRID = 4, 100, 48


def write_archive(root):
    os.makedirs(root, exist_ok=True)
    for k in range(FILES):
        rng = np.random.default_rng(k)
        y = rng.integers(0, 3, PER_FILE)
        field = rng.normal(0, 1, (PER_FILE, GRID, GRID)).astype(np.float32)
        field += (y[:, None, None] - 1) * np.linspace(-1, 1, GRID, dtype=np.float32)
        np.savez_compressed(os.path.join(root, f"part{k}.npz"), field=field, label=y)


class RadarFields(Dataset):
    def __init__(self, root):
        self.paths = [os.path.join(root, f"part{k}.npz") for k in range(FILES)]
        self.index = [(k, i) for k in range(FILES) for i in range(PER_FILE)]

    def __len__(self):
        return len(self.index)

    def _part(self, k):
        return np.load(self.paths[k])

    def __getitem__(self, n):
        k, i = self.index[n]
        part = self._part(k)
        return torch.from_numpy(part["field"][i])[None], int(part["label"][i])
