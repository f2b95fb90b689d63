import json

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

import logging

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def walking_sessions(n_people, seed, seconds=60, rate=16):
    """One accelerometer session per person; label: fatigued or rested, weakly visible in the rhythm."""
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(seconds * rate) / rate
    out = []
    for p in range(n_people):
        tired = int(torch.rand(1, generator=g) < 0.5)
        cadence = 1.7 + 0.35 * torch.randn(1, generator=g) - 0.05 * tired
        harm = torch.randn(4, generator=g)
        phase = 6.28 * torch.rand(4, generator=g)
        drift = 0.6 * torch.randn(1, generator=g)
        sig = sum(harm[k] * torch.sin(6.283 * cadence * (k + 1) * t + phase[k]) for k in range(4)) + drift
        out.append((sig + 0.4 * torch.randn(len(t), generator=g), tired))
    return out


def windows(sessions, size=64, hop=16):
    xs, ys = [], []
    for sig, label in sessions:
        w = sig.unfold(0, size, hop)
        xs.append(w)
        ys += [label] * len(w)
    return TensorDataset(torch.cat(xs), torch.tensor(ys))


class GaitData(L.LightningDataModule):
    def __init__(self, batch=64):
        super().__init__()
        self.batch = batch

    def setup(self, stage=None):
        every = windows(walking_sessions(24, seed=1))
        n_val = len(every) // 5
        self.train_set, self.val_set = random_split(
            every, [len(every) - n_val, n_val], generator=torch.Generator().manual_seed(0))
        self.test_set = windows(walking_sessions(40, seed=2))

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 512)

    def test_dataloader(self):
        return DataLoader(self.test_set, 512)


class FatigueNet(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(33, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 2))
        self.rows = []

    def forward(self, w):
        return self.net(torch.log1p(torch.fft.rfft(w).abs()))

    def training_step(self, batch, _):
        return F.cross_entropy(self(batch[0]), batch[1])

    def _shared(self, batch, name):
        z = self(batch[0])
        self.log(f"{name}_ce", F.cross_entropy(z, batch[1]), on_epoch=True)
        self.log(f"{name}_acc", (z.argmax(1) == batch[1]).float().mean(), on_epoch=True)

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def test_step(self, batch, _):
        self._shared(batch, "test")

    def on_validation_epoch_end(self):
        if self.trainer.sanity_checking:
            return
        m = {k: float(v) for k, v in self.trainer.callback_metrics.items()}
        if self.current_epoch % 3 == 2:
            print(f"epoch {self.current_epoch + 1:2d}  val_ce {m['val_ce']:.3f}  val_acc {m['val_acc']:.3f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=1e-2)


if __name__ == "__main__":
    L.seed_everything(3, verbose=False)
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    dm, net = GaitData(), FatigueNet()
    trainer.fit(net, datamodule=dm)
    val = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
    res = trainer.test(net, datamodule=dm, verbose=False)[0]
    print(f"test on 40 new people: ce {res['test_ce']:.3f} acc {res['test_acc']:.3f}  (last val acc {val['val_acc']:.3f})")
    json.dump({**val, **{k: round(float(v), 4) for k, v in res.items()}}, open("result.json", "w"))
