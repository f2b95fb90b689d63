import lightning as L
import torch
from torch import nn
from torchmetrics.classification import MulticlassAccuracy


class DefectClassifier(L.LightningModule):
    def __init__(self, n_classes=4, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, n_classes))
        self.acc = MulticlassAccuracy(n_classes, average="micro")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        logits = self(x)
        loss = nn.functional.cross_entropy(logits, y)
        batch_acc = self.acc(logits, y)
        self.log_dict({"train_loss": loss, "train_acc": batch_acc}, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        self.acc.update(logits, y)
        self.log("val_loss", nn.functional.cross_entropy(logits, y), on_epoch=True)

    def on_validation_epoch_end(self):
        self.log("val_acc", self.acc.compute())
        self.acc.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-4)
