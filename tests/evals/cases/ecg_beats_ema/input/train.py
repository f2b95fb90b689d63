import logging
import warnings

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from beats import load_beats
from callbacks import WeightAveraging

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class BeatNet(L.LightningModule):
    def __init__(self, lr=1e-3, width=24):
        super().__init__()
        self.save_hyperparameters()
        layers, c = [], 1
        for k in (9, 7, 5):
            layers += [nn.Conv1d(c, width, k, stride=2, padding=k // 2), nn.GroupNorm(4, width), nn.GELU()]
            c = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.features(x).mean(-1))

    def training_step(self, batch, i):
        x, y = batch
        loss = nn.functional.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=False)
        return loss

    def validation_step(self, batch, i):
        x, y = batch
        out = self(x)
        self.log("val_loss", nn.functional.cross_entropy(out, y))
        self.log("val_acc", (out.argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    L.seed_everything(5, verbose=False)
    train = DataLoader(TensorDataset(*load_beats(1280, 0)), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(*load_beats(400, 1)), batch_size=200)
    logger = CSVLogger("lightning_logs", name="beats", version=0)
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=logger, log_every_n_steps=5,
                        callbacks=[WeightAveraging(decay=0.99)], enable_progress_bar=False,
                        enable_checkpointing=False, enable_model_summary=False)
    trainer.fit(BeatNet(), train, valid)
    with open(f"{logger.log_dir}/metrics.csv") as f:
        print(f.read().rstrip())


if __name__ == "__main__":
    main()
