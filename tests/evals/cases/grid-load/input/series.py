import numpy as np


def hourly_load(n_hours=4000, seed=5):
    r = np.random.default_rng(seed)
    t = np.arange(n_hours)
    daily = 8 * np.sin(2 * np.pi * t / 24) + 3 * np.sin(4 * np.pi * t / 24 + 0.7)
    weekly = 5 * np.sin(2 * np.pi * t / 168 + 1.0)
    ar = np.zeros(n_hours)
    for i in range(1, n_hours):
        ar[i] = 0.93 * ar[i - 1] + r.normal(0, 0.9)
    return (60 + daily + weekly + ar).astype(np.float32)


def make_windows(y, context=48, horizon=6):
    idx = np.arange(len(y) - context - horizon)
    x = np.stack([y[i:i + context] for i in idx])
    t = np.stack([y[i + context:i + context + horizon] for i in idx])
    return x, t


def dataset():
    y = hourly_load()
    cut = int(0.8 * len(y))
    mu, sd = y[:cut].mean(), y[:cut].std()
    y = (y - mu) / sd
    return make_windows(y[:cut]), make_windows(y[cut:])
