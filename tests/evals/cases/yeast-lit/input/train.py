import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
SITES = 8


def proteins(n, seed):
    g = torch.Generator().manual_seed(seed)
    centre = torch.randn(SITES, 16, generator=torch.Generator().manual_seed(0))
    y = torch.multinomial(torch.tensor([.3, .2, .15, .1, .1, .05, .05, .05]), n, True, generator=g)
    x = centre[y] + 0.9 * torch.randn(n, 16, generator=g)
    flip = torch.rand(n, generator=g) < 0.08  # annotation errors
    y = torch.where(flip, torch.randint(0, SITES, (n,), generator=g), y)
    return x, y


class YeastNet(L.LightningModule):
    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)
        self.net = nn.Sequential(nn.Linear(16, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5),
                                 nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, SITES))

    def training_step(self, batch, _):
        x, y = batch
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        perm = torch.randperm(len(x))
        z = self.net(lam * x + (1 - lam) * x[perm])
        loss = lam * F.cross_entropy(z, y, self.weight) + (1 - lam) * F.cross_entropy(z, y[perm], self.weight)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        z = self.net(x)
        self.log("val_loss", F.cross_entropy(z, y), batch_size=len(y))
        self.log("val_acc", (z.argmax(1) == y).float().mean(), batch_size=len(y))

    def on_train_epoch_end(self):
        m = {k: round(float(v), 4) for k, v in self.trainer.callback_metrics.items()}
        print(f"epoch={self.current_epoch} {m} lr={self.optimizers().param_groups[0]['lr']:.1e}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=2e-3, weight_decay=1e-2)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", factor=0.3, patience=2)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": plateau, "monitor": "val_acc", "interval": "epoch"}}


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    x, y = proteins(2500, 1)
    xv, yv = proteins(600, 2)
    mean, std = x.mean(0), x.std(0)
    counts = torch.bincount(y, minlength=SITES).float()
    train = DataLoader(TensorDataset((x - mean) / std, y), batch_size=64, shuffle=True, drop_last=True)
    val = DataLoader(TensorDataset((xv - mean) / std, yv), batch_size=200)
    trainer = L.Trainer(max_epochs=40, accelerator="cpu", logger=CSVLogger("."), enable_progress_bar=False, enable_model_summary=False,
                        enable_checkpointing=False, num_sanity_val_steps=0, gradient_clip_val=1.0,
                        callbacks=[EarlyStopping("val_acc", mode="max", patience=6)])
    trainer.fit(YeastNet((counts.sum() / counts).sqrt()), train, val)
    print(f"stopped after epoch {trainer.current_epoch - 1}, best val_acc {float(trainer.early_stopping_callback.best_score):.3f}")
