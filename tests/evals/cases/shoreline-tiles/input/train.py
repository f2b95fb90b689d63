#!/usr/bin/env python
"""Water / sand / vegetation / rock segmentation of aerial coast tiles (4 classes)."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from losses import SegCriterion

CLASSES = ("water", "sand", "vegetation", "rock")
VOID = 255


class CoastTiles(Dataset):
    colours = np.array([[0.1, 0.3, 0.7], [0.8, 0.7, 0.5], [0.2, 0.6, 0.2], [0.5, 0.5, 0.5]], dtype=np.float32)

    def __init__(self, n, size, seed):
        rng = np.random.default_rng(seed)
        self.tiles = []
        yy, xx = np.mgrid[0:size, 0:size] / size
        for _ in range(n):
            a, b, c = rng.uniform(0.2, 0.8, 3)
            shore = a + 0.15 * np.sin(6 * xx + 6 * b)
            m = np.where(yy < shore, 0, 1)
            m = np.where(yy > shore + 0.2 * c, 2, m)
            m[(xx - b) ** 2 + (yy - c) ** 2 < 0.015] = 3
            if rng.random() < 0.15:                    # not surveyed
                k = rng.integers(2, 8)
                m[:, -k:] = VOID
            rgb = self.colours[np.minimum(m, 3)] + rng.normal(0, 0.12, (size, size, 3))
            self.tiles.append((rgb.astype(np.float32), m.astype(np.uint8)))

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        rgb, m = self.tiles[i]
        return torch.from_numpy(rgb).permute(2, 0, 1), torch.from_numpy(m).long()


class SmallUNet(nn.Module):
    def __init__(self, n_out, w=12):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.ReLU())
        self.core = nn.Sequential(nn.Conv2d(2 * w, 2 * w, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.out = nn.Conv2d(w + 3, n_out, 1)

    def forward(self, x):
        return self.out(torch.cat([self.up(self.core(self.down(x))), x], 1))


def miou(pred, m, n):
    ok = m != VOID
    scores = []
    for c in range(n):
        p, t = (pred == c) & ok, (m == c) & ok
        union = (p | t).sum().item()
        if union:
            scores.append((p & t).sum().item() / union)
    return sum(scores) / len(scores)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--bs", type=int, default=16)
    ap.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    o = ap.parse_args()
    torch.manual_seed(2)
    dev = torch.device(o.device)
    train_dl = DataLoader(CoastTiles(240, 32, 0), batch_size=o.bs, shuffle=True)
    val_dl = DataLoader(CoastTiles(60, 32, 1), batch_size=60)
    unet = SmallUNet(len(CLASSES)).to(dev)
    criterion = SegCriterion(len(CLASSES), void=VOID)
    sgd = torch.optim.Adam(unet.parameters(), 2e-3)
    print(f"device={dev} tiles={len(train_dl.dataset)} classes={list(enumerate(CLASSES))}")
    for ep in range(o.epochs):
        unet.train()
        for it, (x, m) in enumerate(train_dl):
            x, m = x.to(dev), m.to(dev)
            cost, parts = criterion(unet(x), m, ep)
            sgd.zero_grad()
            cost.backward()
            sgd.step()
            if it % 7 == 0:
                print(f"  ep{ep} it{it:02d} " + " ".join(f"{k}={v:.4f}" for k, v in parts.items()), flush=True)
        unet.eval()
        with torch.no_grad():
            x, m = next(iter(val_dl))
            print(f"ep{ep} val mIoU {miou(unet(x.to(dev)).argmax(1).cpu(), m, len(CLASSES)):.3f}", flush=True)


if __name__ == "__main__":
    main()
