"""Beat-rhythm classifier on single-lead ECG strips."""
import logging
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("ecg")

FS = 125
RHYTHMS = ["sinus", "afib", "flutter", "pvc"]


def synth_record(rhythm, seconds, rng):
    t = np.arange(seconds * FS) / FS
    rate = {"sinus": 1.1, "afib": 1.6, "flutter": 2.4, "pvc": 0.9}[rhythm]
    x = np.sin(2 * np.pi * rate * t) ** 15
    if rhythm == "afib":
        x += 0.3 * rng.standard_normal(t.size).cumsum() / np.sqrt(t.size)
    return (x + 0.05 * rng.standard_normal(t.size)).astype(np.float32)


def cut_strips(records, seconds=3, stride=1):
    xs, ys = [], []
    for signal, label in records:
        for start in range(0, signal.size - seconds * FS + 1, stride * FS):
            xs.append(signal[start:start + seconds * FS])
            ys.append(label)
    return TensorDataset(torch.tensor(np.stack(xs)).unsqueeze(1), torch.tensor(ys))


class StripNet(nn.Module):
    def __init__(self, strip_len, n_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.MaxPool1d(4))
        with torch.no_grad():
            flat = self.features(torch.zeros(2, 1, strip_len)).flatten(1).shape[1]
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(flat, 64), nn.ReLU(), nn.Linear(64, n_classes))

    def forward(self, x):
        return self.head(self.features(x))


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    patients = [(synth_record(r, 20, rng), i) for _ in range(10) for i, r in enumerate(RHYTHMS)]
    strip_seconds = 4
    train_ds = cut_strips(patients[:32], seconds=strip_seconds)
    val_ds = cut_strips(patients[32:])
    log.info("train strips %d, val strips %d", len(train_ds), len(val_ds))
    train_dl = DataLoader(train_ds, batch_size=32, shuffle=True)
    val_dl = DataLoader(val_ds, batch_size=64)
    model = StripNet(strip_seconds * FS, len(RHYTHMS))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        model.train()
        total = 0.0
        for x, y in train_dl:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
        log.info("epoch %d train_loss %.4f", epoch, total / len(train_ds))
        model.eval()
        hit = 0
        with torch.no_grad():
            for x, y in val_dl:
                hit += (model(x).argmax(1) == y).sum().item()
        log.info("epoch %d val_acc %.3f", epoch, hit / len(val_ds))


if __name__ == "__main__":
    main()
