import lightning.pytorch as pl
import torch
from torch import nn


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 5)
        self.training_losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.training_losses.append(loss)  # FAULT C103
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
