import csv
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from prepare import KINDS


class SeedBelt(Dataset):
    def __init__(self, root, flip=False):
        self.files = sorted(Path(root).glob("seed_*.npy"))
        with open(Path(root) / "labels.csv") as f:
            self.labels = [KINDS.index(row["kind"]) for row in csv.DictReader(f)]
        if len(self.files) != len(self.labels):
            raise ValueError(f"{len(self.files)} pictures, {len(self.labels)} labels")
        self.flip = flip

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = torch.from_numpy(np.load(self.files[i])).unsqueeze(0)
        if self.flip and torch.rand(()) < 0.5:
            img = img.flip(-1)
        return (img - 0.2) / 0.4, self.labels[i]
