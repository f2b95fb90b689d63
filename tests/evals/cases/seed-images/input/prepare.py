"""Write the pictures of the sorting belt as single files, and the inspector's table."""
import csv
from pathlib import Path

import numpy as np

KINDS = ("wheat", "barley", "oat", "weed")


def picture(kind, rng):
    yy, xx = np.mgrid[-1:1:16j, -1:1:16j]
    a = rng.uniform(0, np.pi)
    u, v = xx * np.cos(a) + yy * np.sin(a), -xx * np.sin(a) + yy * np.cos(a)
    long, short = ((0.8, 0.4), (0.6, 0.5), (0.95, 0.2), (0.35, 0.3))[kind]
    img = ((u / long) ** 2 + (v / short) ** 2 < 1).astype(np.float32)
    return img * rng.uniform(0.6, 1.0) + 0.15 * rng.standard_normal((16, 16))


def write(root, n, seed):
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    with open(root / "labels.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["picture", "kind"])
        for i in range(n):
            kind = int(rng.integers(len(KINDS)))
            np.save(root / f"seed_{i}.npy", picture(kind, rng).astype(np.float32))
            w.writerow([i, KINDS[kind]])
