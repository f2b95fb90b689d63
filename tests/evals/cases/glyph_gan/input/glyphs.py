import numpy as np
import torch


def stroke_glyphs(n, seed, size=16):
    """Rounded bars and crosses, values in [-1, 1]."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    out = np.empty((n, 1, size, size), np.float32)
    for i in range(n):
        ang, w = rng.uniform(0, np.pi), rng.uniform(1.0, 1.8)
        cx, cy = rng.normal(size / 2, 1.0, 2)
        d = np.abs((xx - cx) * np.sin(ang) - (yy - cy) * np.cos(ang))
        img = np.exp(-((d / w) ** 2))
        if rng.random() < 0.5:
            d2 = np.abs((xx - cx) * np.cos(ang) + (yy - cy) * np.sin(ang))
            img = np.maximum(img, np.exp(-((d2 / w) ** 2)))
        out[i, 0] = 2 * img - 1
    return torch.from_numpy(out)
