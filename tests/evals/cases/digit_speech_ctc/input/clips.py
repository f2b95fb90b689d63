"""Spoken digit strings as synthetic log-mel frames (20 bands, 10 ms hop scaled down)."""
import numpy as np
import torch

N_MELS = 20
PROTO = np.random.default_rng(2024).normal(0, 1.0, (10, 2, N_MELS))
RATES = {"slow": (9, 13), "normal": (7, 9), "fast": (3, 5)}     # frames per digit


def speak(digits, rate, rng):
    lo, hi = RATES[rate]
    frames = []
    for d in digits:
        n = int(rng.integers(lo, hi + 1))
        mix = np.linspace(0, 1, n)[:, None]
        env = 0.4 + 0.6 * np.sin(np.pi * (np.arange(n) + 0.5) / n)[:, None]
        frames.append(env * ((1 - mix) * PROTO[d, 0] + mix * PROTO[d, 1]))
    x = np.concatenate(frames)
    return (x + rng.normal(0, 0.25, x.shape)).astype(np.float32)


def corpus(n, seed):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        rate = rng.choice(["slow", "normal", "fast"], p=[0.4, 0.5, 0.1])
        digits = rng.integers(0, 10, int(rng.integers(4, 8)))
        out.append((speak(digits, rate, rng), digits + 1, str(rate)))
    return out


def collate(items):
    feats = [torch.from_numpy(f) for f, _, _ in items]
    lens = torch.tensor([len(f) for f in feats])
    x = torch.nn.utils.rnn.pad_sequence(feats, batch_first=True)
    y = torch.cat([torch.from_numpy(d) for _, d, _ in items])
    y_lens = torch.tensor([len(d) for _, d, _ in items])
    return x, lens, y, y_lens, [r for *_, r in items]
