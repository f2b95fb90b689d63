import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset


class Transactions(L.LightningDataModule):
    """Card transactions: 20 features, about 8 % fraud, interaction-driven label."""

    def __init__(self, batch_size=128):
        super().__init__()
        self.batch_size = batch_size

    def _make(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(n, 20, generator=g)
        z = x[:, 0] * x[:, 1] + torch.sin(2 * x[:, 2]) + 0.8 * x[:, 3].abs() * x[:, 4] - x[:, 5]
        p = torch.sigmoid(3.0 * (z - 2.2))
        return TensorDataset(x, torch.bernoulli(p, generator=g))

    def setup(self, stage=None):
        self.tr, self.va = self._make(9000, 1), self._make(3000, 2)

    def train_dataloader(self):
        return DataLoader(self.tr, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.va, 500)
