import torch
from torch.utils.data import Dataset

CODES = 40
MAX_EVENTS = 32


class Stays(Dataset):
    """ICU stays as sequences of coded events; a deterioration follows when a lactate code and a pressor code both occur."""

    LACTATE, PRESSOR = 7, 21

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(8, MAX_EVENTS + 1, (1,), generator=g))
            ev = torch.randint(1, CODES, (length,), generator=g)
            ev[(ev == self.LACTATE) | (ev == self.PRESSOR)] = 3
            kind = int(torch.randint(0, 4, (1,), generator=g))
            slots = torch.randperm(length, generator=g)[:2]
            if kind in (0, 1):
                ev[slots[0]], ev[slots[1]] = self.LACTATE, self.PRESSOR
            elif kind == 2:
                ev[slots[0]] = self.LACTATE
            else:
                ev[slots[1]] = self.PRESSOR
            self.rows.append((ev, float(kind in (0, 1))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    width = max(len(e) for e, _ in batch)
    events = torch.zeros(len(batch), width, dtype=torch.long)
    observed = torch.zeros(len(batch), width, dtype=torch.bool)
    for r, (e, _) in enumerate(batch):
        events[r, : len(e)] = e
        observed[r, : len(e)] = True
    return events, observed, torch.tensor([y for _, y in batch])
