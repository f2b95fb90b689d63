import csv

import numpy as np
import torch


def read_rows(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


class Encoder:
    """Standardises numbers and one-hot encodes categories with values of the training rows."""

    def __init__(self, rows, target, categorical):
        self.target = target
        self.categorical = categorical
        self.numeric = [k for k in rows[0] if k not in categorical and k not in (target, "customer_id")]
        values = self._numbers(rows)
        self.mean, self.std = values.mean(0), values.std(0) + 1e-6
        self.levels = {c: sorted({r[c] for r in rows}) for c in categorical}
        self.width = len(self.numeric) + sum(len(v) for v in self.levels.values())

    def _numbers(self, rows):
        return np.array([[float(r[k]) for k in self.numeric] for r in rows], dtype=np.float32)

    def transform(self, rows):
        parts = [(self._numbers(rows) - self.mean) / self.std]
        for c in self.categorical:
            parts.append(np.array([[float(r[c] == lv) for lv in self.levels[c]] for r in rows], dtype=np.float32))
        y = np.array([float(r[self.target]) for r in rows], dtype=np.float32)
        return torch.from_numpy(np.concatenate(parts, 1)), torch.from_numpy(y)
