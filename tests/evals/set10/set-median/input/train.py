"""Deep set: predict spread and median of a set of unknown size (Lightning, config.yaml)."""
import warnings

import lightning as L
import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
MAX_ITEMS = 24


def make_sets(n, generator):
    """(n, 24) values, a mask, and the targets (median, interquartile range)"""
    size = torch.randint(5, MAX_ITEMS + 1, (n,), generator=generator)
    loc = 2 * torch.randn(n, 1, generator=generator)
    scale = 0.3 + 1.5 * torch.rand(n, 1, generator=generator)
    items = loc + scale * torch.randn(n, MAX_ITEMS, generator=generator)
    skewed = torch.rand(n, 1, generator=generator) < 0.5
    items = torch.where(skewed, loc + scale * (items - loc).div(scale).exp().clamp(max=8), items)
    mask = torch.arange(MAX_ITEMS).unsqueeze(0) < size.unsqueeze(1)
    masked = items.masked_fill(~mask, float("nan"))
    q = torch.nanquantile(masked, torch.tensor([0.25, 0.5, 0.75]), dim=1)
    target = torch.stack([q[1], q[2] - q[0]], dim=1)
    return items * mask, mask.float(), target


class DeepSet(L.LightningModule):
    def __init__(self, width, pool, lr, weight_decay):
        super().__init__()
        self.save_hyperparameters()
        self.phi = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        n_pool = {"mean": 1, "mean_max": 2}[pool]
        self.rho = nn.Sequential(nn.Linear(n_pool * width + 1, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x, mask):
        h = self.phi(x.unsqueeze(-1))
        m = mask.unsqueeze(-1)
        count = m.sum(1)
        pooled = [(h * m).sum(1) / count]
        if self.hparams.pool == "mean_max":
            pooled.append((h * m).amax(1))
        return self.rho(torch.cat(pooled + [count / MAX_ITEMS], dim=-1))

    def training_step(self, batch, batch_idx):
        x, mask, y = batch
        loss = nn.functional.huber_loss(self(x, mask), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, mask, y = batch
        pred = self(x, mask)
        self.log("val_loss", nn.functional.huber_loss(pred, y))
        self.log("val_mae", (pred - y).abs().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)


class EpochLine(L.Callback):
    def on_validation_epoch_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        m = trainer.callback_metrics
        self.last = (m["val_loss"].item(), m["val_mae"].item())

    def on_train_epoch_end(self, trainer, module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch:2d}: train_loss={m['train_loss']:.4f} "
              f"val_loss={self.last[0]:.4f} val_mae={self.last[1]:.4f}", flush=True)


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    L.seed_everything(cfg["seed"], verbose=False)
    g = torch.Generator().manual_seed(cfg["seed"])
    train = TensorDataset(*make_sets(cfg["data"]["n_train"], g))
    val = TensorDataset(*make_sets(cfg["data"]["n_val"], g))
    spread = val.tensors[2].sub(val.tensors[2].mean(0)).abs().mean()
    print(f"train {len(train)} val {len(val)} sets, MAE of a constant {spread:.4f}")
    bs = cfg["data"]["batch_size"]
    module = DeepSet(**cfg["model"], **cfg["optim"])
    trainer = L.Trainer(
        **cfg["trainer"],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=True,
        callbacks=[EpochLine()],
    )
    trainer.fit(module, DataLoader(train, bs, shuffle=True), DataLoader(val, 200))


if __name__ == "__main__":
    main()
