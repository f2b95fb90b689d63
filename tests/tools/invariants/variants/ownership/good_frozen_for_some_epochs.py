"""Frozen for some epochs."""
import lightning as L, torch
from torch import nn


class Two(L.LightningModule):

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def training_step(self, batch, i):
        x, y = batch
        loss = nn.functional.cross_entropy(self.head(self.backbone(x)), y)
        self.log('loss', loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW([{'params': self.backbone.parameters(), 'lr': 1e-05}, {'params': self.head.parameters()}])

    def on_train_epoch_start(self):
        if self.current_epoch == 0:
            self.backbone.requires_grad_(False)
        if self.current_epoch == 5:
            self.backbone.requires_grad_(True)
