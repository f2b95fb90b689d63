import numpy as np
import torch

SPECIES = ("wren", "owl", "thrush", "warbler", "crow")


def spectrogram(kind, rng, bands=32, frames=40):
    t, f = np.arange(frames), np.arange(bands)[:, None]
    start = rng.integers(2, 10)
    u = np.clip((t - start) / 24, 0, 1)
    live = ((t >= start) & (t < start + 24)).astype(float)
    pitch = rng.normal(0, 1.2)
    if kind == 0:
        centre, width, gate = 20 + 3 * np.sin(2 * np.pi * 5 * u), 1.3, live
    elif kind == 1:
        centre, width, gate = 6 - 2 * u, 1.5, live * (np.sin(2 * np.pi * 1.5 * u) > -0.2)
    elif kind == 2:
        centre, width, gate = 14 + 6 * np.sign(np.sin(2 * np.pi * 2 * u)), 1.3, live
    elif kind == 3:
        centre, width, gate = 15 + 10 * u, 1.3, live
    else:
        centre, width, gate = 11 + 0 * u, 5.0, live * (np.sin(2 * np.pi * 2.5 * u) > 0)
    s = gate * np.exp(-(((f - centre - pitch) / width) ** 2))
    return s * rng.uniform(0.7, 1.3) + np.abs(rng.normal(0, 0.22, (bands, frames)))


def clips(n, seed, labelled=True):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n)
    x = np.stack([spectrogram(k, rng) for k in y]).astype(np.float32)
    x = torch.from_numpy(np.log1p(x))[:, None]
    return (x, torch.from_numpy(y)) if labelled else x
