"""Surface defects on small tiles. Lightning module with a report of how well the classes separate in feature space."""
import argparse
import logging
import os
import time
import warnings

import lightning as L
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


def rss_mb():
    with open("/proc/self/statm") as fh:
        return int(fh.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def tiles(n, seed, size=20):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = 0.8 * torch.randn(n, 1, size, size, generator=g)
    pos = torch.randint(3, size - 3, (n, 2), generator=g)
    for i in range(n):
        r, c = pos[i].tolist()
        if y[i] == 1:
            x[i, 0, r, 2:-2] += 1.5
        elif y[i] == 2:
            x[i, 0, 2:-2, c] += 1.5
        elif y[i] == 3:
            x[i, 0, r - 2:r + 3, c - 2:c + 3] += 1.2
    return TensorDataset(x, y)


class Defects(L.LightningModule):
    def __init__(self, lr, width):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.head = nn.Linear(2 * width, 4)
        self.started = 0.0

    def forward(self, x):
        return self.head(self.encoder(x).mean((2, 3)))

    def on_train_epoch_start(self):
        self.started = time.time()

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_validation_epoch_start(self):
        maps = []
        self.encoder.register_forward_hook(lambda module, args, out: maps.append(out.detach().clone()))
        self.maps, self.targets = maps, []

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.targets.append(y)
        self.log("valid_loss", F.cross_entropy(logits, y))
        self.log("valid_acc", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        feats = torch.cat([m.mean((2, 3)) for m in self.maps])
        y = torch.cat(self.targets)
        centres = torch.stack([feats[y == k].mean(0) for k in range(4)])
        within = (feats - centres[y]).square().sum(1).mean()
        between = (centres - centres.mean(0)).square().sum(1).mean()
        self.log("separation", between / within)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:3d}  train {m['train_loss']:.4f}  valid {m['valid_loss']:.4f}  "
              f"acc {m['valid_acc']:.3f}  separation {m['separation']:.2f}  "
              f"{time.time() - self.started:.2f}s  rss {rss_mb():.0f} MB", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--batch", type=int, default=64)
    args = p.parse_args()
    L.seed_everything(6, verbose=False)
    train = DataLoader(tiles(768, seed=1), batch_size=args.batch, shuffle=True)
    valid = DataLoader(tiles(256, seed=2), batch_size=128)
    model = Defects(args.lr, args.width)
    print(f"{sum(q.numel() for q in model.parameters())} parameters, {len(train)} steps per epoch, "
          f"rss at start {rss_mb():.0f} MB")
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        num_sanity_val_steps=0)
    trainer.fit(model, train, valid)


if __name__ == "__main__":
    main()
