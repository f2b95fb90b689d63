import numpy as np
import torch

CLASSES = "N S V F".split()


def beat(kind, rng, n=120):
    t = np.linspace(-0.4, 0.6, n)
    g = lambda c, w, a: a * np.exp(-((t - c) / w) ** 2)
    jit = rng.normal(0, 0.012)
    p, qrs, tw = 0.15, 0.025, 0.28
    if kind == 0:
        y = g(-0.18 + jit, 0.03, p) + g(0, qrs, 1.0) - g(0.035, 0.02, 0.25) + g(tw, 0.07, 0.3)
    elif kind == 1:
        y = g(-0.10 + jit, 0.02, -0.1) + g(0, qrs, 0.95) - g(0.035, 0.02, 0.2) + g(tw - 0.03, 0.07, 0.28)
    elif kind == 2:
        y = g(0.01, 0.07 + jit, 1.1) - g(0.2, 0.1, 0.4)
    else:
        y = g(-0.18, 0.03, p * 0.7) + g(0, 0.045 + jit / 2, 1.0) - g(0.12, 0.06, 0.2) + g(tw, 0.08, 0.15)
    y = y * rng.uniform(0.8, 1.2) + 0.08 * np.sin(2 * np.pi * (t * rng.uniform(0.2, 0.6) + rng.random()))
    return y + rng.normal(0, 0.06, n)


def load_beats(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    x = np.stack([beat(k, rng) for k in y]).astype(np.float32)
    return torch.from_numpy(x)[:, None], torch.from_numpy(y)
