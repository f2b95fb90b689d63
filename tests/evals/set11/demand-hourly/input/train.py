"""Hourly load from calendar position and temperature (Lightning)."""
import logging
import warnings

import lightning as L
import numpy as np
import torch
import yaml
from lightning.pytorch.loggers import CSVLogger
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class CalendarEncoding(nn.Module):
    """Sines and cosines of the daily and the weekly cycle at the hour counter t."""

    def __init__(self, harmonics):
        super().__init__()
        k = torch.arange(1, harmonics + 1)
        omega = torch.cat([2 * torch.pi * k / 24, 2 * torch.pi * k / 168])
        self.register_buffer("omega", omega.unsqueeze(0))
        self.dim = 2 * omega.numel()

    def forward(self, t):
        phase = t @ self.omega
        return torch.cat([phase.sin(), phase.cos()], dim=-1)


class LoadModel(L.LightningModule):
    def __init__(self, hidden, harmonics, lr, weight_decay, scale):
        super().__init__()
        self.save_hyperparameters()
        self.calendar = CalendarEncoding(harmonics)
        self.net = nn.Sequential(
            nn.Linear(self.calendar.dim + 1, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 1))

    def forward(self, t, temp):
        return self.net(torch.cat([self.calendar(t), temp], dim=-1)).float()

    def training_step(self, batch, _):
        t, temp, y = batch
        loss = F.smooth_l1_loss(self(t, temp), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        t, temp, y = batch
        pred = self(t, temp)
        self.log("valid_loss", F.smooth_l1_loss(pred, y))
        self.log("valid_mae", (pred - y).abs().mean() * self.hparams.scale)
        self.log("valid_r2", 1 - (pred - y).square().mean() / y.var())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        if self.current_epoch % 3 == 0 or self.current_epoch == self.trainer.max_epochs - 1:
            print(f"epoch {self.current_epoch:3d}  train {m['train_loss']:.4f}  valid {m['valid_loss']:.4f}  "
                  f"mae {m['valid_mae']:.2f} MW  r2 {m['valid_r2']:.3f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, self.trainer.max_epochs)]


def load(path, valid_every):
    frame = np.genfromtxt(path, delimiter=",", names=True)
    held = (frame["hour"] // 24) % valid_every == 0
    col = lambda name: torch.tensor(frame[name], dtype=torch.float32).unsqueeze(1)
    t, temp, y = col("hour"), col("temperature"), col("load")
    mask = torch.tensor(held)
    mean, std = y[~mask].mean(), y[~mask].std()
    tm, ts = temp[~mask].mean(), temp[~mask].std()
    temp, y = (temp - tm) / ts, (y - mean) / std
    split = lambda m: TensorDataset(t[m], temp[m], y[m])
    return split(~mask), split(mask), std.item()


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    L.seed_everything(cfg["seed"], verbose=False)
    train, valid, scale = load(cfg["data"]["file"], cfg["data"]["valid_every"])
    print(f"{len(train)} training hours, {len(valid)} validation hours, load std {scale:.2f} MW, "
          f"precision {cfg['trainer']['precision']}")
    model = LoadModel(**cfg["model"], **cfg["optim"], scale=scale)
    trainer = L.Trainer(accelerator="cpu", devices=1, logger=CSVLogger(".", name="lightning_logs", version=0),
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        num_sanity_val_steps=0, log_every_n_steps=10, **cfg["trainer"])
    trainer.fit(model,
                DataLoader(train, batch_size=cfg["data"]["batch_size"], shuffle=True),
                DataLoader(valid, batch_size=len(valid)))


if __name__ == "__main__":
    main()
