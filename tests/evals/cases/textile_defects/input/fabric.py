import numpy as np
import torch

DEFECTS = ("none", "slub", "hole", "stain")


def weave(kind, rng, size=28):
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    period = rng.uniform(3.0, 4.0)
    img = 0.5 + 0.2 * np.sin(2 * np.pi * xx / period) * np.sin(2 * np.pi * yy / period)
    cx, cy = rng.uniform(6, size - 6, 2)
    if kind == 1:
        img += 0.32 * np.exp(-((yy - cy) / 1.2) ** 2) * (np.abs(xx - cx) < 9)
    elif kind == 2:
        img -= 0.40 * (((xx - cx) ** 2 + (yy - cy) ** 2) < 7)
    elif kind == 3:
        img -= 0.17 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 26)
    return img + rng.normal(0, 0.19, img.shape)


def dataset(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    x = np.stack([weave(k, rng) for k in y]).astype(np.float32)
    return torch.from_numpy((x - 0.5) / 0.25)[:, None], torch.from_numpy(y)
