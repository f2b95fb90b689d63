"""Greenhouse tomato yield: LightningModule with linear warm-up and cosine decay."""
import logging
import math
import warnings
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def greenhouse(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    y = 1.5 * torch.tanh(x[:, 0]) + x[:, 1] * (x[:, 2] > 0) - 0.5 * x[:, 3] ** 2 + 0.2 * torch.randn(n, generator=g)
    return TensorDataset(x, (y - y.mean()) / y.std())


class YieldNet(L.LightningModule):
    def __init__(self, lr=1e-3, warmup=150, total=750):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x).squeeze(-1), y)
        self.log("train_mse", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self.net(x).squeeze(-1), y))

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if "train_mse" in m or not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch:2d} step {self.global_step:4d} val_mse {m['val_mse']:.4f}", flush=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)

        def factor(step):
            if step < self.hparams.warmup:
                return (step + 1) / self.hparams.warmup
            done = (step - self.hparams.warmup) / (self.hparams.total - self.hparams.warmup)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))

        sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
        return {"optimizer": opt, "lr_scheduler": sched}


def main():
    L.seed_everything(1, verbose=False)
    train = DataLoader(greenhouse(3200, 1), 64, shuffle=True)
    val = DataLoader(greenhouse(800, 2), 400)
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(YieldNet(total=15 * len(train)), train, val)


if __name__ == "__main__":
    main()
