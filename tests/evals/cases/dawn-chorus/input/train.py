import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

BIRDS = {"wren": (4.0, 0.9), "robin": (6.0, 0.3), "great tit": (9.0, 0.6), "blackbird": (2.5, 0.2), "chaffinch": (12.0, 0.8),
         "siskin": (15.0, 0.4)}


def record(species, gen, frames=40):
    """tiny log-mel patch: fundamental rises or falls along the call"""
    f0, slope = BIRDS[species]
    t = torch.linspace(0, 1, frames)
    f = f0 + 4 * slope * t + 0.6 * torch.randn(1, generator=gen)
    mel = torch.arange(20.0)[:, None]
    spec = torch.exp(-((mel - f) / 1.3) ** 2) + 0.5 * torch.exp(-((mel - f - 3) / 1.5) ** 2)
    return spec + 0.35 * torch.rand(20, frames, generator=gen)


class CallArchive:
    """stands for the folder of annotated recordings; yields (spectrogram, species)"""

    def __init__(self, n, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.n = n

    def __iter__(self):
        names = list(BIRDS)
        for _ in range(self.n):
            s = names[int(torch.randint(len(names), (1,), generator=self.gen))]
            yield record(s, self.gen), s


class Calls(Dataset):
    def __init__(self, archive):
        self.items, self.species = [], {}
        for spec, name in archive:
            k = self.species.setdefault(name, len(self.species))
            self.items.append((spec, k))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class CallNet(L.LightningModule):
    def __init__(self, n_classes, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Conv1d(20, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(32, 32, 3, padding=1),
                                 nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, n_classes))

    def _common(self, batch, tag):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.log(f"{tag}_loss", loss, on_epoch=True, on_step=False)
        self.log(f"{tag}_acc", (logits.argmax(1) == y).float().mean(), on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, _):
        return self._common(batch, "train")

    def validation_step(self, batch, _):
        return self._common(batch, "val")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Report(L.Callback):
    def on_train_epoch_end(self, trainer, module):
        m = {k: float(v) for k, v in trainer.callback_metrics.items()}
        print(f"Epoch {trainer.current_epoch}: train_loss={m['train_loss']:.3f} train_acc={m['train_acc']:.3f} "
              f"val_loss={m['val_loss']:.3f} val_acc={m['val_acc']:.3f}", flush=True)


def main():
    L.seed_everything(3, verbose=False)
    train, val = Calls(CallArchive(900, seed=10)), Calls(CallArchive(300, seed=11))
    print(f"train: {len(train)} calls, {len(train.species)} species / val: {len(val)} calls, {len(val.species)} species")
    trainer = L.Trainer(max_epochs=8, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        callbacks=[Report()], num_sanity_val_steps=0, accelerator="cpu")
    trainer.fit(CallNet(len(train.species)), DataLoader(train, batch_size=30, shuffle=True), DataLoader(val, batch_size=100))


if __name__ == "__main__":
    main()
