import numpy as np
import torch


def level_series(n_hours=3200, seed=0):
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.25, 2.0, n_hours) * (rng.random(n_hours) < 0.12)
    fast = slow = 0.0
    level = np.empty(n_hours)
    for t in range(n_hours):
        fast = 0.85 * fast + rain[t]
        slow = 0.985 * slow + 0.15 * rain[t]
        level[t] = 0.8 + 0.10 * fast + 0.06 * slow + 0.05 * np.sin(2 * np.pi * t / 24)
    level += rng.normal(0, 0.01, n_hours)
    return np.stack([level, rain], 1).astype(np.float32)


def windows(series, past=30, ahead=6):
    mu, sd = series[:2400].mean(0), series[:2400].std(0)
    z = (series - mu) / sd
    x = np.stack([z[i:i + past] for i in range(0, len(z) - past - ahead, 3)])
    y = np.stack([z[i + past + ahead - 1, 0] for i in range(0, len(z) - past - ahead, 3)])
    cut = int(0.75 * len(x))
    t = torch.from_numpy
    return (t(x[:cut]), t(y[:cut])), (t(x[cut + 20:]), t(y[cut + 20:])), float(sd[0])
