import numpy as np
import torch

EPOCH0 = 1_716_000_000


def simulate(n, seed):
    """Click streams with unix timestamps. Buyers mix quick clicks with long reads, visitors move evenly."""
    rng = np.random.default_rng(seed)
    stamps = np.zeros((n, 12), dtype=np.int64)
    pages = rng.integers(0, 25, size=(n, 12))
    buy = rng.integers(0, 2, size=n)
    for i in range(n):
        t = EPOCH0 + int(rng.integers(0, 30 * 86400))
        gaps = rng.integers(20, 36, size=12)
        if buy[i]:
            slow = rng.permutation(12) < 6
            gaps = np.where(slow, rng.integers(38, 58, size=12), rng.integers(2, 14, size=12))
        stamps[i] = t + np.cumsum(gaps)
    flip = rng.random(n) < 0.03
    return stamps, pages, np.where(flip, 1 - buy, buy)


class SessionTable(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        stamps, pages, buy = simulate(n, seed)
        self.stamps = torch.tensor(stamps, dtype=torch.float32)
        self.pages = torch.tensor(pages)
        self.buy = torch.tensor(buy, dtype=torch.float32)

    def __len__(self):
        return len(self.buy)

    def __getitem__(self, i):
        t = self.stamps[i]
        dwell = torch.diff(t, prepend=t[:1])
        return torch.log1p(dwell), self.pages[i], self.buy[i]
