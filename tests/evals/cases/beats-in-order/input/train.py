from pathlib import Path
import csv

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

BEATS = ["normal", "pvc", "apb", "lbbb", "rbbb"]


def read_class(k, n, rng):
    """One record file per beat type in the original archive."""
    t = np.linspace(-1, 1, 96)
    width = [0.05, 0.16, 0.05, 0.11, 0.09][k]
    shift = [0.0, 0.05, -0.25, 0.0, 0.12][k]
    x = np.exp(-((t - shift) / width) ** 2)[None] - [0.1, 0.6, 0.1, 0.2, 0.3][k] * np.exp(-((t - 0.3) / 0.1) ** 2)[None]
    x = x + 0.25 * rng.standard_normal((n, 96))
    return TensorDataset(torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.full((n,), k))


def build(seed=0, n=400):
    rng = np.random.default_rng(seed)
    train = ConcatDataset([read_class(k, n, rng) for k in range(len(BEATS))])
    val = ConcatDataset([read_class(k, 80, rng) for k in range(len(BEATS))])
    return train, val


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 7, stride=2), nn.ReLU(), nn.Flatten())
        self.c = nn.Linear(32 * 19, len(BEATS))

    def forward(self, x):
        return self.c(self.f(x))


def confusion(net, loader):
    m = torch.zeros(len(BEATS), len(BEATS), dtype=torch.long)
    with torch.no_grad():
        for x, y in loader:
            for a, b in zip(y.tolist(), net(x).argmax(1).tolist()):
                m[a, b] += 1
    return m


if __name__ == "__main__":
    torch.manual_seed(0)
    train, val = build()
    loaders = {
        "train": DataLoader(train, batch_size=40, num_workers=0, drop_last=True),
        "val": DataLoader(val, batch_size=100),
    }
    net = BeatNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    with Path("metrics.csv").open("w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["epoch", "batch", "loss", "acc"])
        for epoch in range(8):
            accs, losses = [], []
            for b, (x, y) in enumerate(loaders["train"]):
                z = net(x)
                loss = nn.functional.cross_entropy(z, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
                accs.append((z.argmax(1) == y).float().mean().item())
                w.writerow([epoch, b, f"{loss.item():.4f}", f"{accs[-1]:.3f}"])
            m = confusion(net, loaders["val"])
            print(f"epoch {epoch}: train loss {np.mean(losses):.3f} (min {min(losses):.1e}, max {max(losses):.2f}) train acc {np.mean(accs):.3f} "
                  f"| val acc {m.diag().sum().item() / m.sum().item():.3f} | predicted counts {m.sum(0).tolist()}")
