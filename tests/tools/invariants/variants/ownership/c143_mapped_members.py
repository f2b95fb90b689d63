"""Members that `map` makes, by a static method."""
import lightning as L
import torch
from torch import nn


class Ensemble(L.LightningModule):
    def __init__(self, n=5):
        super().__init__()
        self.members = list(map(self.make_member, range(n)))  # FAULT C143

    @staticmethod
    def make_member(i):
        return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return torch.stack([m(x) for m in self.members]).mean(0)

    def training_step(self, batch, idx):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)
