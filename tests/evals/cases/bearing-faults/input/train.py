# Bearing condition monitoring: 4 states, heavily imbalanced (most windows are "ok")
import collections
import csv

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

STATES = ["ok", "inner_race", "outer_race", "ball"]
SHARE = [0.82, 0.07, 0.07, 0.04]
SEED = 17


def make_windows(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(128) / 128
    freq = {0: None, 1: 19, 2: 13, 3: 29}
    label = rng.choice(4, size=n, p=SHARE)
    x = rng.normal(0, 1.0, (n, 128)) + 0.8 * np.sin(2 * np.pi * (5 * t[None] + rng.random((n, 1))))
    for k, f in freq.items():
        rows = label == k
        if f:
            x[rows] += 1.1 * np.sin(2 * np.pi * (f * t[None] + rng.random((rows.sum(), 1))))
    return x.astype(np.float32), label


class VibrationWindows(Dataset):
    def __init__(self, n, seed, jitter=False):
        self.x, self.label = make_windows(n, seed)
        self.jitter = jitter

    def __len__(self):
        return len(self.label)

    def class_counts(self):
        c = collections.Counter(self.label.tolist())
        return [c[k] for k in range(len(STATES))]

    def __getitem__(self, i):
        w = torch.from_numpy(self.x[i])
        if self.jitter:
            w = torch.roll(w, int(torch.randint(0, 128, (1,)))) * (0.9 + 0.2 * torch.rand(1))
        return w, int(self.label[i])


class SpectralNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(65, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))

    def forward(self, w):
        return self.mlp(torch.log1p(torch.fft.rfft(w).abs()))


def balanced_loader(ds, batch_size):
    counts = torch.tensor(ds.class_counts(), dtype=torch.double)
    weights = 1.0 / counts
    sampler = WeightedRandomSampler(weights, num_samples=len(ds), replacement=True)
    return DataLoader(ds, batch_size=batch_size, sampler=sampler)


def recall_table(clf, dl):
    clf.eval()
    hit, tot = np.zeros(4), np.zeros(4)
    with torch.no_grad():
        for w, k in dl:
            p = clf(w).argmax(1)
            for c in range(4):
                tot[c] += (k == c).sum().item()
                hit[c] += ((k == c) & (p == c)).sum().item()
    return hit / tot


def main():
    torch.manual_seed(SEED)
    train, test = VibrationWindows(3000, 1, jitter=True), VibrationWindows(1500, 2)
    dl, test_dl = balanced_loader(train, 64), DataLoader(test, batch_size=500)
    clf, ce = SpectralNet(), nn.CrossEntropyLoss()
    opt = torch.optim.AdamW(clf.parameters(), lr=1e-3)
    print("class counts:", dict(zip(STATES, train.class_counts())))
    with open("curves.csv", "w", newline="") as fh:
        w_ = csv.writer(fh)
        w_.writerow(["epoch", "train_loss", "train_acc", *("recall_" + s for s in STATES)])
        for epoch in range(8):
            clf.train()
            s = n = ok = 0
            for win, k in dl:
                z = clf(win)
                j = ce(z, k)
                opt.zero_grad()
                j.backward()
                opt.step()
                s += j.item() * len(k)
                ok += (z.argmax(1) == k).sum().item()
                n += len(k)
            r = recall_table(clf, test_dl)
            w_.writerow([epoch, f"{s / n:.5f}", f"{ok / n:.4f}", *(f"{v:.4f}" for v in r)])
            print(f"epoch {epoch}  train {s / n:.4f} / {ok / n:.3f}   test recall " + "  ".join(f"{a}={v:.2f}" for a, v in zip(STATES, r)), flush=True)


if __name__ == "__main__":
    main()
