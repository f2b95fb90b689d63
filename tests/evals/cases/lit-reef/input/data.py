import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

SPECIES = 6


def patches(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, SPECIES, (n,), generator=g)
    grid = torch.linspace(0, 3.14, 12)
    fx, fy = (1 + y % 3).float(), (1 + y // 3 * 2).float()
    img = torch.sin(fx[:, None, None] * grid[None, None, :] + 6.28 * torch.rand(n, 1, 1, generator=g))
    img = img * torch.sin(fy[:, None, None] * grid[None, :, None] + 6.28 * torch.rand(n, 1, 1, generator=g))
    return TensorDataset((img + 0.4 * torch.randn(n, 12, 12, generator=g)).unsqueeze(1), y)


class ReefPatches(L.LightningDataModule):
    def setup(self, stage=None):
        self.tr, self.va = patches(1600, 1), patches(400, 2)

    def train_dataloader(self):
        return DataLoader(self.tr, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.va, batch_size=100)
