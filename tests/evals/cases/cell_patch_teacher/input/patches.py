import numpy as np
import torch


def cells(n, seed, size=20):
    """0 = round cell, 1 = elongated, 2 = dividing (two lobes)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    yy, xx = np.mgrid[0:size, 0:size] - (size - 1) / 2
    out = np.empty((n, 1, size, size), np.float32)
    for i, k in enumerate(y):
        a = rng.uniform(0, np.pi)
        u, v = xx * np.cos(a) + yy * np.sin(a), -xx * np.sin(a) + yy * np.cos(a)
        if k == 0:
            img = np.exp(-((u / 4.2) ** 2 + (v / 4.2) ** 2) ** 2)
        elif k == 1:
            img = np.exp(-((u / 7.0) ** 2 + (v / 2.6) ** 2) ** 2)
        else:
            img = np.exp(-(((u - 3.6) / 2.8) ** 2 + (v / 2.8) ** 2) ** 2) + np.exp(
                -(((u + 3.6) / 2.8) ** 2 + (v / 2.8) ** 2) ** 2)
        out[i, 0] = img * rng.uniform(0.7, 1.2) + rng.normal(0, 0.40, img.shape)
    return torch.from_numpy(out), torch.from_numpy(y)


def augment(x):
    """Random flips, quarter turns, gain and noise, per batch."""
    if torch.rand(()) < 0.5:
        x = x.flip(-1)
    x = torch.rot90(x, int(torch.randint(4, ())), (-2, -1))
    gain = torch.empty(len(x), 1, 1, 1).uniform_(0.7, 1.3)
    shift = torch.randint(-2, 3, (2,)).tolist()
    return torch.roll(x * gain, shift, (-2, -1)) + 0.05 * torch.randn_like(x)
