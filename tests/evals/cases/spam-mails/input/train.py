"""Spam scores from hashed n-grams; heavy dropout and feature noise in training."""
import warnings
import torch
import torch.nn.functional as F
import lightning as L
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


def mails(n, seed, feats=120):
    w = torch.randn(feats, generator=torch.Generator().manual_seed(1))
    g = torch.Generator().manual_seed(seed)
    x = torch.poisson(0.4 * torch.rand(n, feats, generator=g), generator=g)
    return TensorDataset(x, ((x @ w + 0.4 * torch.randn(n, generator=g)) > 0).float())


class Spam(L.LightningModule):
    def __init__(self, feats=120, p=0.5, word_drop=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(feats, 128), nn.ReLU(), nn.Dropout(p), nn.Linear(128, 64), nn.ReLU(),
                                 nn.Dropout(p), nn.Linear(64, 1), nn.Flatten(0))

    def step(self, batch, stage):
        x, y = batch
        if stage == "train":
            x = x * (torch.rand_like(x) > self.hparams.word_drop)
        z = self.net(x)
        loss = F.binary_cross_entropy_with_logits(z, y)
        self.log(f"{stage}_logloss", loss, on_epoch=True, on_step=False)
        self.log(f"{stage}_acc", ((z > 0) == y.bool()).float().mean(), on_epoch=True, on_step=False)
        return loss

    def training_step(self, b, i):
        return self.step(b, "train")

    def validation_step(self, b, i):
        self.step(b, "val")

    def on_train_epoch_end(self):
        m = {k: float(v) for k, v in self.trainer.callback_metrics.items()}
        print("Epoch {:>2}: train_logloss {train_logloss:.4f}, train_acc {train_acc:.4f}, val_logloss {val_logloss:.4f}, "
              "val_acc {val_acc:.4f}".format(self.current_epoch, **m))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    L.seed_everything(5, verbose=False)
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=CSVLogger(".", name="lightning_logs"), log_every_n_steps=10,
                        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
                        num_sanity_val_steps=0)
    trainer.fit(Spam(), DataLoader(mails(3000, 2), 100, shuffle=True), DataLoader(mails(800, 3), 400))
