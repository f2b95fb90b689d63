import torch
from torch.utils.data import Dataset

DIGITS = "0123456789"
VOCAB = {c: i + 1 for i, c in enumerate(DIGITS + "+=.")}          # 0 is padding


class AddSums(Dataset):
    """'37+5=42.' strings; max_digits is raised by the curriculum while training goes on"""

    def __init__(self, size, max_digits, seed=0):
        self.size, self.max_digits, self.seed = size, max_digits, seed

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i + 7919 * self.max_digits)
        n = int(torch.randint(1, self.max_digits + 1, (1,), generator=g))
        a, b = (int(v) for v in torch.randint(0, 10 ** n, (2,), generator=g))
        s = f"{a}+{b}={str(a + b)[::-1]}."
        return torch.tensor([VOCAB[c] for c in s]), s.index("=")


def pad(batch):
    m = max(len(t) for t, _ in batch)
    ids = torch.zeros(len(batch), m, dtype=torch.long)
    mask = torch.zeros(len(batch), m, dtype=torch.bool)
    for r, (t, eq) in enumerate(batch):
        ids[r, :len(t)] = t
        mask[r, eq + 1:len(t)] = True
    return ids, mask
