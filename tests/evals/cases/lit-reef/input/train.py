import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger

from data import SPECIES, ReefPatches

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class ReefNet(L.LightningModule):
    def __init__(self, max_lr=0.08):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(216, SPECIES),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, i):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, i):
        x, y = batch
        out = self(x)
        self.log_dict({"val_loss": F.cross_entropy(out, y), "val_acc": (out.argmax(1) == y).float().mean()})

    def on_train_epoch_end(self):
        lr = self.optimizers().param_groups[0]["lr"]
        self.log("lr", lr)
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} lr {lr:.6f} train_loss {float(m['train_loss']):.4f} "
              f"val_loss {float(m['val_loss']):.4f} val_acc {float(m['val_acc']):.3f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.hparams.max_lr, momentum=0.9)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            opt, max_lr=self.hparams.max_lr, total_steps=self.trainer.estimated_stepping_batches, div_factor=100
        )
        return {"optimizer": opt, "lr_scheduler": {"scheduler": cycle, "name": "onecycle", "frequency": 1}}


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=CSVLogger("."), enable_progress_bar=False,
                        enable_model_summary=False, enable_checkpointing=False, log_every_n_steps=10, num_sanity_val_steps=0)
    trainer.fit(ReefNet(), datamodule=ReefPatches())
