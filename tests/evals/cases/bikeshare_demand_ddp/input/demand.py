"""Hourly rental counts for one station over two years (synthetic)."""
import numpy as np
import torch


def hourly_table(n_days=240, seed=0):
    rng = np.random.default_rng(seed)
    rows, counts = [], []
    temp_day = 0.0
    for d in range(n_days):
        season = np.sin(2 * np.pi * (d - 80) / 365)
        temp_day = 0.8 * temp_day + rng.normal(0, 1.2)
        rain = rng.random() < 0.25
        weekend = d % 7 >= 5
        trend = 0.4 * d / n_days
        for h in range(24):
            temp = 12 + 10 * season + temp_day + 4 * np.sin(2 * np.pi * (h - 9) / 24)
            if weekend:
                shape = np.exp(-((h - 14) / 4.5) ** 2)
            else:
                shape = 0.9 * np.exp(-((h - 8) / 1.4) ** 2) + 1.1 * np.exp(-((h - 17.5) / 1.8) ** 2) + 0.2
            lam = 45 * shape * np.exp(0.03 * (temp - 12) - 0.7 * rain + trend)
            rows.append([np.sin(2 * np.pi * h / 24), np.cos(2 * np.pi * h / 24),
                         np.sin(4 * np.pi * h / 24), np.cos(4 * np.pi * h / 24),
                         float(weekend), float(rain), (temp - 12) / 10, season])
            counts.append(rng.poisson(lam))
    return torch.tensor(np.array(rows), dtype=torch.float32), torch.tensor(counts, dtype=torch.float32)


def split_by_time(x, y, frac=0.85):
    cut = int(len(x) * frac)
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])
