"""Daily bread sales, LightningModule with early stopping."""
import warnings
import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")


def bakery_days(n=900):
    g = torch.Generator().manual_seed(8)
    dow = torch.randint(0, 7, (n,), generator=g)
    temp = 15 + 8 * torch.randn(n, generator=g)
    holiday = (torch.rand(n, generator=g) < 0.05).float()
    sold = 120 + 40 * (dow >= 5) - 1.5 * (temp - 15) + 60 * holiday + 8 * torch.randn(n, generator=g)
    x = torch.cat([nn.functional.one_hot(dow, 7).float(), ((temp - 15) / 8)[:, None], holiday[:, None]], 1)
    return TensorDataset(x, ((sold - 130) / 30)[:, None])


class SalesModel(L.LightningModule):
    def __init__(self, width=32, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(9, width), nn.ReLU(), nn.Linear(width, 1))

    def _shared(self, batch, stage):
        x, y = batch
        pred = self.net(x)
        loss = nn.functional.smooth_l1_loss(pred, y)
        self.log_dict({f"{stage}/loss": loss, f"{stage}/mae": (pred - y).abs().mean()},
                      on_step=False, on_epoch=True, prog_bar=True)
        return loss

    def training_step(self, batch, _):
        return self._shared(batch, "train")

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(8)
    train, val = random_split(bakery_days(), [700, 200])
    trainer = L.Trainer(
        max_epochs=30, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, num_sanity_val_steps=0,
        callbacks=[EarlyStopping(monitor="val_loss", patience=4, mode="min")])
    trainer.fit(SalesModel(), DataLoader(train, 64, shuffle=True), DataLoader(val, 200))
    print({k: float(v) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
