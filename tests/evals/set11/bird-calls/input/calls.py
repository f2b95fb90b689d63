"""Synthetic field recordings: log-mel-like patches of eight species, and the augmenting dataset."""
import numpy as np
import torch
from torch.utils.data import Dataset

BANDS, FRAMES, SPECIES = 20, 32, 8


def _call(rng, k):
    """One clean call: a chirp whose start, slope and repetition belong to the species."""
    patch = np.zeros((BANDS, FRAMES), np.float32)
    start, slope = 4 + 3 * (k % 4), (0.55, -0.3)[k // 4]
    onset, length = rng.integers(2, 8), rng.integers(9, 13)
    for rep in range(2):
        t0 = onset + rep * (length + 1 + k % 3)
        for t in range(length):
            if t0 + t < FRAMES:
                centre = start + slope * t + rng.normal() * 0.3
                patch[:, t0 + t] += np.exp(-((np.arange(BANDS) - centre) ** 2) / 1.6)
    return patch


def recordings(n, seed, spread=True):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, SPECIES, n)
    x = np.stack([_call(rng, k) for k in y])
    shift = rng.integers(-9, 10, n) if spread else np.zeros(n, int)
    x = np.stack([np.roll(p, s, axis=1) for p, s in zip(x, shift)])
    gain = rng.uniform(0.6, 1.4, (n, 1, 1)) if spread else 1.0
    x = gain * x + 0.55 * rng.normal(size=x.shape)
    return x.astype(np.float32), y.astype(np.int64)


class Calls(Dataset):
    """Adds a random time shift, gain, band masking and background noise to every clip that is read."""

    def __init__(self, x, y, augment, seed=0):
        self.x, self.y, self.augment, self.seed = x, y, augment, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        patch = self.x[i]
        if self.augment:
            rng = np.random.default_rng((self.seed, self.epoch, i))
            patch = np.roll(patch, rng.integers(-10, 11), axis=1) * rng.uniform(0.6, 1.4)
            patch = patch + rng.normal(scale=0.4, size=patch.shape)
            band = rng.integers(0, BANDS - 3)
            patch[band:band + 3] = 0.0
        return torch.from_numpy(patch.astype(np.float32)).unsqueeze(0), int(self.y[i])
