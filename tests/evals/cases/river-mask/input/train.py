import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from augment import Brightness, RandomFlipRotate


def make_tile(rng, size=32):
    """Multi-band tile with a river meandering from one border to the other."""
    rows = np.arange(size)
    centre = rng.uniform(4, size - 4) + rng.uniform(2, 6) * np.sin(rows / rng.uniform(4, 9) + rng.uniform(0, 6))
    width = rng.uniform(1.5, 4)
    mask = (np.abs(np.arange(size)[None] - centre[:, None]) < width).astype(np.float32)
    if rng.random() < 0.5:
        mask = mask.T.copy()
    land = rng.normal(0.45, 0.12, (3, size, size))
    water = rng.normal(0.25, 0.08, (3, size, size)) + np.array([0.0, 0.05, 0.1])[:, None, None]
    img = np.where(mask[None] > 0, water, land).astype(np.float32)
    return img, mask


class Tiles(Dataset):
    def __init__(self, n, seed, augment):
        rng = np.random.default_rng(seed)
        self.items = [make_tile(rng) for _ in range(n)]
        self.geo = RandomFlipRotate() if augment else None
        self.photo = Brightness() if augment else None

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, mask = self.items[i]
        img, mask = torch.from_numpy(img), torch.from_numpy(mask)[None]
        if self.geo is not None:
            img, mask = self.geo(img), self.geo(mask)
            img = self.photo(img)
        return (img - 0.4) / 0.15, mask


class SegNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.enc = block(3, c)
        self.down = nn.Sequential(nn.MaxPool2d(2), block(c, 2 * c))
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.dec = block(3 * c, c)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.enc(x)
        return self.out(self.dec(torch.cat([a, self.up(self.down(a))], 1)))


def soft_dice(logits, target):
    p = logits.sigmoid()
    inter = (p * target).sum((1, 2, 3))
    return (1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)).mean()


def iou(logits, target):
    p = logits > 0
    t = target > 0.5
    return ((p & t).sum() / (p | t).sum().clamp(min=1)).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--bs", type=int, default=16)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--no-aug", action="store_true")
    a = p.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    tr = DataLoader(Tiles(320, 1, not a.no_aug), batch_size=a.bs, shuffle=True)
    va = DataLoader(Tiles(80, 2, False), batch_size=80)
    net = SegNet()
    opt = torch.optim.Adam(net.parameters(), lr=a.lr)
    print("epoch | bce    | dice   | train IoU | val IoU")
    print("------+--------+--------+-----------+--------")
    for ep in range(1, a.epochs + 1):
        net.train()
        agg = np.zeros(3)
        for x, m in tr:
            z = net(x)
            bce = nn.functional.binary_cross_entropy_with_logits(z, m)
            dice = soft_dice(z, m)
            opt.zero_grad()
            (bce + dice).backward()
            opt.step()
            agg += [bce.item(), dice.item(), iou(z, m)]
        net.eval()
        with torch.no_grad():
            x, m = next(iter(va))
            v = iou(net(x), m)
        b, d, t = agg / len(tr)
        print(f"{ep:5d} | {b:.4f} | {d:.4f} | {t:9.3f} | {v:.3f}", flush=True)


if __name__ == "__main__":
    main()
