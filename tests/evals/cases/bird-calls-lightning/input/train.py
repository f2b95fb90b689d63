import warnings
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.loggers import CSVLogger
from data import load_all, loaders

warnings.filterwarnings("ignore", ".*num_workers.*")


class CallNet(L.LightningModule):
    def __init__(self, feats, classes, lr=2e-3, dropout=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(feats, 96), nn.ReLU(), nn.Dropout(dropout), nn.Linear(96, 96), nn.ReLU(), nn.Dropout(dropout), nn.Linear(96, classes))
        self.hits = []

    def training_step(self, batch, i):
        x, y = batch
        out = self.net(x)
        loss = F.cross_entropy(out, y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        self.log("train_acc", (out.argmax(1) == y).float().mean(), on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, i):
        x, y = batch
        out = self.net(x)
        self.log("val_loss", F.cross_entropy(out, y))
        self.log("val_acc", (out.argmax(1) == y).float().mean())
        self.hits.append(torch.stack([y, out.argmax(1)]))

    def on_validation_epoch_end(self):
        y, p = torch.cat(self.hits, 1)
        self.hits.clear()
        for c in range(self.hparams.classes):
            self.log(f"recall_{c}", (p[y == c] == c).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} " + " ".join(f"{k}={float(v):.3f}" for k, v in sorted(m.items()) if k != "epoch"))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)


def main():
    L.seed_everything(3)
    shards = load_all()
    train, val = loaders(shards)
    model = CallNet(shards[0].tensors[0].shape[1], len(shards[0].classes))
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", devices=1, logger=CSVLogger("logs", name="calls", version=0), enable_progress_bar=False,
                        enable_checkpointing=False, enable_model_summary=False, log_every_n_steps=20, num_sanity_val_steps=0)
    trainer.fit(model, train, val)


if __name__ == "__main__":
    main()
