import torch
from torch.utils.data import Dataset


class Complexes(Dataset):
    """Ligand fingerprints and pocket descriptors with a noisy bilinear affinity (pKd)."""

    def __init__(self, part):
        g = torch.Generator().manual_seed(60)
        n = 4161
        lig = (torch.rand(n, 64, generator=g) < 0.2).float()
        poc = torch.randn(n, 16, generator=g)
        w = torch.randn(64, 3, generator=g) @ torch.randn(3, 16, generator=g) / 8
        pkd = 6 + ((lig @ w) * poc).sum(1) * 0.6 + 0.2 * torch.randn(n, generator=g)
        cut = 3841
        s = slice(0, cut) if part == "fit" else slice(cut, n)
        self.lig, self.poc, self.pkd = lig[s], poc[s], pkd[s]

    def __len__(self):
        return len(self.pkd)

    def __getitem__(self, i):
        return self.lig[i], self.poc[i], self.pkd[i]
