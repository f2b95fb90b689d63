"""Denoise speckled 1-d ultrasound lines with a small conv net and an adversarial-free feature term."""
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.INFO)


def scan_lines(n, length=64, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 1, length)
    clean = torch.zeros(n, 1, length)
    for _ in range(4):
        c, w, a = (torch.rand(n, 1, 1, generator=g) for _ in range(3))
        clean += a * torch.exp(-((x - c) / (0.03 + 0.1 * w)) ** 2)
    noisy = clean * (1 + 0.5 * torch.randn(clean.shape, generator=g)) + 0.1 * torch.randn(clean.shape, generator=g)
    return TensorDataset(noisy, clean)


class LineDenoiser(L.LightningModule):
    def __init__(self, channels=16, lr=2e-3, edge_weight=0.5):
        super().__init__()
        self.save_hyperparameters()
        # two learning rates: the edge weight is annealed by hand further down
        self.automatic_optimization = False
        self.net = nn.Sequential(
            nn.Conv1d(1, channels, 7, padding=3), nn.GELU(),
            nn.Conv1d(channels, channels, 7, padding=3), nn.GELU(),
            nn.Conv1d(channels, 1, 7, padding=3),
        )

    def forward(self, x):
        return self.net(x)

    def objective(self, batch):
        noisy, clean = batch
        out = self(noisy)
        pixel = (out - clean).square().mean()
        edge = (out.diff(dim=-1) - clean.diff(dim=-1)).abs().mean()
        return pixel, edge

    def training_step(self, batch, batch_idx):
        pixel, edge = self.objective(batch)
        weight = self.hparams.edge_weight * min(1.0, self.current_epoch / 4)
        total = pixel + weight * edge
        self.log_dict({"train/pixel": pixel, "train/edge": edge, "train/total": total}, on_step=False, on_epoch=True)
        return total

    def validation_step(self, batch, batch_idx):
        pixel, edge = self.objective(batch)
        psnr = 10 * torch.log10(1.0 / pixel)
        self.log_dict({"val/pixel": pixel, "val/psnr": psnr}, on_epoch=True)

    def configure_optimizers(self):
        body = [p for n, p in self.named_parameters() if not n.startswith("net.4")]
        return torch.optim.AdamW([{"params": body}, {"params": self.net[4].parameters(), "lr": self.hparams.lr / 2}], lr=self.hparams.lr)


class PrintEpoch(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        print(f"Epoch {trainer.current_epoch}: train/pixel={m['train/pixel']:.5f} train/edge={m['train/edge']:.5f} "
              f"val/pixel={m['val/pixel']:.5f} val/psnr={m['val/psnr']:.3f}", flush=True)


if __name__ == "__main__":
    L.seed_everything(21)
    fit, val = scan_lines(1024), scan_lines(128, seed=1)
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=CSVLogger("."), callbacks=[PrintEpoch()], num_sanity_val_steps=0,
                        enable_progress_bar=False, enable_checkpointing=False, log_every_n_steps=8)
    trainer.fit(LineDenoiser(), DataLoader(fit, 64, shuffle=True), DataLoader(val, 128))
    print("trained for", trainer.global_step, "optimizer steps")
