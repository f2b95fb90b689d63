import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader

from churn import customers

warnings.filterwarnings("ignore")


class ChurnModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 2))

    def step(self, batch, name):
        x, y = batch
        z = self.net(x)
        loss = nn.functional.cross_entropy(z, y)
        self.log_dict({f"{name}_loss": loss, f"{name}_acc": (z.argmax(-1) == y).float().mean()}, on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, i):
        return self.step(batch, "train")

    def validation_step(self, batch, i):
        self.step(batch, "val")

    def test_step(self, batch, i):
        self.step(batch, "test")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3, weight_decay=0.01)


class Line(L.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = trainer.callback_metrics
        print("epoch %2d  train %.3f/%.3f  val %.3f/%.3f" % (trainer.current_epoch, m["train_loss"], m["train_acc"], m["val_loss"], m["val_acc"]))


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    loaders = [DataLoader(customers(n, s), b, shuffle=s == 0) for n, s, b in ((2500, 0, 64), (1000, 1, 500), (4000, 2, 1000))]
    keep = ModelCheckpoint(dirpath="checkpoints", monitor="val_loss", mode="min")
    stop = EarlyStopping("val_loss", patience=6, verbose=True)
    trainer = L.Trainer(max_epochs=100, accelerator="cpu", callbacks=[keep, stop, Line()], logger=CSVLogger("."), enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(ChurnModel(), loaders[0], loaders[1])
    print(f"stopped after epoch {trainer.current_epoch - 1}; best {keep.best_model_path.split('/')[-1]} val_loss {float(keep.best_model_score):.4f}")
    trainer.test(dataloaders=loaders[2], ckpt_path="best", weights_only=False)
