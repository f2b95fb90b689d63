import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")


def textures(n, seed, k=6, s=12):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, k, (n,), generator=g)
    r = torch.arange(s).float()
    ang = y.float() * 3.1416 / k + 0.12 * torch.randn(n, generator=g)
    ph = 6.28 * torch.rand(n, 1, 1, generator=g)
    grid = r[None, :, None] * ang.cos()[:, None, None] + r[None, None, :] * ang.sin()[:, None, None]
    return (torch.sin(1.1 * grid + ph) + 0.5 * torch.randn(n, s, s, generator=g)).unsqueeze(1), y


class TextureNet(L.LightningModule):
    def __init__(self, k=6, alpha=0.8, smoothing=0.1, p_drop=0.4, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(p_drop / 2),
            nn.Flatten(), nn.Linear(12 * 16, 64), nn.ReLU(), nn.Dropout(p_drop),
        )
        self.classifier = nn.Linear(64, k)

    def forward(self, x):
        return self.classifier(self.features(x))

    def training_step(self, batch, _):
        x, y = batch
        lam = torch.distributions.Beta(self.hparams.alpha, self.hparams.alpha).sample()
        perm = torch.randperm(len(x))
        z = self(lam * x + (1 - lam) * x[perm])
        ce = lambda t: F.cross_entropy(z, t, label_smoothing=self.hparams.smoothing)
        loss = lam * ce(y) + (1 - lam) * ce(y[perm])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.log("train_acc", (z.argmax(1) == y).float().mean(), on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        z = self(x)
        self.log("val_loss", F.cross_entropy(z, y))
        self.log("val_acc", (z.argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print("epoch {:2d} | ".format(self.current_epoch) + " ".join(f"{k} {m[k]:.3f}" for k in ("train_loss", "train_acc", "val_loss", "val_acc")))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), self.hparams.lr)
        sch = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr, total_steps=int(self.trainer.estimated_stepping_batches))
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sch, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(5)
    tr, va = TensorDataset(*textures(1500, 0)), TensorDataset(*textures(400, 1))
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=CSVLogger("."), enable_progress_bar=False, enable_model_summary=False,
                        enable_checkpointing=False, num_sanity_val_steps=0, log_every_n_steps=10)
    trainer.fit(TextureNet(), DataLoader(tr, 50, shuffle=True), DataLoader(va, 200))
