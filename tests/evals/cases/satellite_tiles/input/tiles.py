"""Synthetic 20x20 three-band tiles: water, forest, field, urban."""
import numpy as np
import torch

NAMES = ("water", "forest", "field", "urban")


def tile(kind, rng, size=20):
    yy, xx = np.mgrid[0:size, 0:size]
    base = np.array([[0.30, 0.36, 0.46], [0.30, 0.42, 0.33], [0.46, 0.44, 0.34], [0.45, 0.43, 0.42]])[kind]
    img = np.ones((3, size, size)) * base[:, None, None]
    if kind == 0:
        img += 0.05 * np.sin(2 * np.pi * (xx + yy * rng.uniform(-1, 1)) / rng.uniform(6, 10))
    elif kind == 1:
        img += 0.10 * rng.normal(size=(1, size // 2, size // 2)).repeat(2, 1).repeat(2, 2)
    elif kind == 2:
        ang = rng.uniform(0, np.pi)
        img += 0.08 * np.sign(np.sin(2 * np.pi * (xx * np.cos(ang) + yy * np.sin(ang)) / rng.uniform(4, 7)))
    else:
        img += 0.12 * np.sign(np.sin(2 * np.pi * xx / 5)) * np.sign(np.sin(2 * np.pi * yy / 5))
    img *= rng.uniform(0.75, 1.25)
    return img + rng.normal(0, 0.50, img.shape)


def tiles(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    x = np.stack([tile(k, rng) for k in y]).astype(np.float32)
    return torch.from_numpy((x - 0.4) / 0.15), torch.from_numpy(y)
