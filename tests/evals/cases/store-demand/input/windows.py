import numpy as np
import torch
from torch.utils.data import Dataset


def synth_sales(n_items=240, n_days=180, seed=0):
    g = np.random.default_rng(seed)
    t = np.arange(n_days)
    level = g.lognormal(2.0, 1.0, (n_items, 1))
    season = 1 + 0.4 * np.sin(2 * np.pi * (t[None] / 7 + g.random((n_items, 1))))
    trend = 1 + 0.002 * t[None] * g.normal(0, 1, (n_items, 1))
    sales = g.poisson(level * season * np.clip(trend, 0.1, None)).astype(np.float32)
    for item in g.choice(n_items, 9, replace=False):  # not yet listed in the shop
        sales[item, : g.integers(40, 75)] = 0.0
    return sales


class ForecastWindows(Dataset):
    """Context window + horizon, every window brought to a common level."""

    def __init__(self, sales, context, horizon, start, stop, stride=3):
        self.sales, self.context, self.horizon = sales, context, horizon
        self.index = [(i, d) for i in range(len(sales)) for d in range(start, stop - context - horizon, stride)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, k):
        item, day = self.index[k]
        row = torch.from_numpy(self.sales[item])
        past = row[day:day + self.context]
        future = row[day + self.context:day + self.context + self.horizon]
        level = past.abs().mean()
        return past / level, future / level, torch.tensor((day + np.arange(self.context + self.horizon)) % 7), level
