import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader

from data import GestureSet, RandomGesture, recordings


class Table(Callback):
    def on_train_epoch_end(self, trainer, module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        if (trainer.current_epoch + 1) % 5 == 0:
            print("| {:>3} | {:8.4f} | {:8.4f} | {:8.4f} | {:7.3f} |".format(
                trainer.current_epoch + 1, m["train_loss"], m["train_acc"], m["val_loss"], m["val_acc"]))


class Gestures(L.LightningModule):
    def __init__(self, channels=48, classes=5, lr=1.5e-3, weight_decay=1e-2, dropout=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv1d(2, channels, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(channels, channels, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten())
        self.clf = nn.Sequential(nn.Dropout(dropout), nn.Linear(channels * 20, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x):
        return self.clf(self.features(x))

    def _shared(self, batch, tag):
        x, y = batch
        out = self(x)
        loss = F.cross_entropy(out, y)
        self.log_dict({f"{tag}_loss": loss, f"{tag}_acc": (out.argmax(1) == y).float().mean()},
                      on_step=False, on_epoch=True, batch_size=len(y))
        return loss

    def training_step(self, batch, _):
        return self._shared(batch, "train")

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)


def main():
    L.seed_everything(9)
    train = GestureSet(*recordings(160, 0), transform=RandomGesture())
    val = GestureSet(*recordings(500, 1))
    print(f"train {len(train)} recordings with augmentation, val {len(val)}")
    print("| ep  | tr_loss  | tr_acc   | val_loss | val_acc |")
    trainer = L.Trainer(max_epochs=60, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, callbacks=[Table()])
    trainer.fit(Gestures(), DataLoader(train, batch_size=20, shuffle=True), DataLoader(val, batch_size=250))


if __name__ == "__main__":
    main()
