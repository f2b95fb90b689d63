import numpy as np
import torch
from torch.utils.data import Dataset


def simulate_unit(rng, length):
    life = np.arange(length)[::-1].astype(np.float32)
    wear = 1 - life / length
    ch = [
        20 + 6 * wear ** 2 + rng.normal(0, 0.4, length),
        101 - 4 * wear + rng.normal(0, 0.3, length),
        3.3 + 0.2 * np.sin(np.arange(length) / 7) + 0.3 * wear + rng.normal(0, 0.05, length),
    ]
    x = np.stack(ch, 1).astype(np.float32)
    x[:, 2] = np.round(x[:, 2] * 64) / 64  # 6 bit per volt
    if rng.random() < 0.02:  # gateway repeats the last reading while a sensor is offline
        a = int(rng.integers(10, length - 30))
        x[a:a + 27, 2] = x[a, 2]
    return x, np.minimum(life, 60) / 60


class Windows(Dataset):
    def __init__(self, n_units, seed, width=24):
        rng = np.random.default_rng(seed)
        self.width, self.index, self.units = width, [], []
        for u in range(n_units):
            x, y = simulate_unit(rng, int(rng.integers(90, 140)))
            self.units.append((torch.from_numpy(x), torch.from_numpy(y)))
            self.index += [(u, s) for s in range(0, len(x) - width, 4)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        u, s = self.index[i]
        x, y = self.units[u]
        return x[s:s + self.width], y[s + self.width - 1]
