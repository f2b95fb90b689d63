"""Adapt an aerial-image encoder to a new 6-class land-use task (head on a frozen encoder)."""
import warnings
import torch
from torch import nn
import torch.nn.functional as F
import lightning as L
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")


def encoder(out=64):
    return nn.Sequential(nn.Conv2d(4, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(32 * 9, out), nn.ReLU())


def scenes(n, classes, seed):
    g = torch.Generator().manual_seed(40 + classes)
    tex = torch.randn(classes, 4, 12, 12, generator=g)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    return tex[y] + 1.0 * torch.randn(n, 4, 12, 12, generator=g), y


class LandUse(L.LightningModule):
    def __init__(self, classes=6, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = encoder()
        self.head = nn.Linear(64, classes)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def freeze(self):
        for p in self.parameters():
            p.requires_grad_(False)
        self.temperature.requires_grad_(True)

    def forward(self, x):
        return self.head(self.backbone(x)) / self.temperature

    def training_step(self, batch, _):
        x, y = batch
        ce = F.cross_entropy(self(x), y)
        self.log("train/ce", ce, on_step=False, on_epoch=True)
        return ce

    def validation_step(self, batch, _):
        x, y = batch
        out = self(x)
        self.log("val/ce", F.cross_entropy(out, y))
        self.log("val/acc", (out.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if not self.trainer.sanity_checking:
            print(f"[{self.current_epoch:02d}] val ce {m['val/ce']:.4f} acc {m['val/acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(7)
    task = LandUse()
    task.freeze()
    fit = DataLoader(TensorDataset(*scenes(600, 6, 1)), 50, shuffle=True)
    val = DataLoader(TensorDataset(*scenes(200, 6, 2)), 100)
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=CSVLogger(".", name="lightning_logs"),
                        enable_progress_bar=False, enable_checkpointing=False, log_every_n_steps=5,
                        enable_model_summary=False)
    trainer.fit(task, fit, val)
