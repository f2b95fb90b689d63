import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision

from fraud_data import Transactions

warnings.filterwarnings("ignore", ".*num_workers.*")
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class FraudScorer(L.LightningModule):
    def __init__(self, lr=5e-4, width=96, pos_weight=4.0):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(20, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )
        self.loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(pos_weight))
        self.auroc = BinaryAUROC()
        self.ap = BinaryAveragePrecision()

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("fit_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        s = self(x)
        self.auroc.update(s, y.int())
        self.ap.update(s, y.int())
        self.log("held_loss", self.loss(s, y))

    def on_validation_epoch_end(self):
        a, p = self.auroc.compute(), self.ap.compute()
        self.log("held_auroc", a)
        self.log("held_ap", p)
        self.auroc.reset()
        self.ap.reset()
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch:>2}  held_auroc {a:.4f}  held_ap {p:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    logging.getLogger("lightning.pytorch").setLevel(logging.INFO)
    L.seed_everything(7)
    stopper = EarlyStopping(monitor="held_auroc", patience=4, verbose=True)
    keeper = ModelCheckpoint(dirpath="work", monitor="held_ap", mode="max", filename="best")
    trainer = L.Trainer(
        max_epochs=40, accelerator="cpu", callbacks=[stopper, keeper], logger=CSVLogger(".", name="logs"),
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=20,
    )
    trainer.fit(FraudScorer(), Transactions())
    print(f"finished after epoch {trainer.current_epoch}; best AP checkpoint {keeper.best_model_score:.4f}")


if __name__ == "__main__":
    main()
