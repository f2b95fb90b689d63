"""A segmentation model as a LightningModule with its data module."""

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, Dataset, random_split


class Tiles(Dataset):
    def __init__(self, count=512, size=32):
        generator = torch.Generator().manual_seed(3)
        self.images = torch.rand(count, 3, size, size, generator=generator)
        self.masks = (self.images.mean(1) > 0.5).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.masks[index]


class TileData(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train, self.held = random_split(Tiles(), [0.8, 0.2])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.held, batch_size=self.batch_size)


class Segmenter(L.LightningModule):
    def __init__(self, width=32, classes=2, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.stages = nn.ModuleList([nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)])
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        for stage in self.stages:
            x = F.relu(stage(x))
        x = F.dropout(self.norm(x), 0.1, training=self.training)
        return self.head(x)

    def step(self, batch):
        images, masks = batch
        logits = self(images)
        return F.cross_entropy(logits, masks), logits, masks

    def training_step(self, batch, index):
        loss, _, _ = self.step(batch)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, index):
        loss, logits, masks = self.step(batch)
        accuracy = (logits.argmax(1) == masks).float().mean()
        self.log("val/loss", loss, sync_dist=True)
        self.log("val/accuracy", accuracy, sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def main():
    L.seed_everything(1)
    callbacks = [EarlyStopping("val/loss", patience=4), ModelCheckpoint(monitor="val/accuracy", mode="max")]
    trainer = L.Trainer(max_epochs=20, devices=2, strategy="ddp", gradient_clip_val=1.0, callbacks=callbacks)
    trainer.fit(Segmenter(), datamodule=TileData())


if __name__ == "__main__":
    main()
