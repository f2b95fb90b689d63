"""Segment vessels in small patches; reports the raw and the averaged weights."""
import csv
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from averaging import WeightAverage

cfg = SimpleNamespace(epochs=8, batch=12, lr=0.02, ema_decay=0.98, width=10, seed=1)


class SegNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.d1 = nn.Conv2d(1, w, 3, padding=1)
        self.d2 = nn.Conv2d(w, 2 * w, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(2 * w, 2 * w, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.out = nn.Conv2d(2 * w, 1, 3, padding=1)
        self.n1, self.n2 = nn.GroupNorm(2, w), nn.GroupNorm(2, 2 * w)

    def forward(self, x):
        a = F.relu(self.n1(self.d1(x)))
        b = F.relu(self.mid(F.relu(self.n2(self.d2(a)))))
        return self.out(torch.cat([a, F.relu(self.up(b))], 1))


def soft_dice(logits, mask):
    p = torch.sigmoid(logits)
    inter = (p * mask).sum((1, 2, 3))
    return 1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)


@torch.no_grad()
def dice(model, x, mask):
    model.eval()
    pred = (model(x) > 0).float()
    inter = (pred * mask).sum((1, 2, 3))
    return ((2 * inter + 1) / (pred.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean().item()


def main():
    torch.manual_seed(cfg.seed)
    z = np.load("patches.npz")
    x = torch.from_numpy(z["image"].astype(np.float32))[:, None] / 255.0
    m = torch.from_numpy(z["mask"].astype(np.float32))[:, None]
    xt, mt, xv, mv = x[:-40], m[:-40], x[-40:], m[-40:]
    model = SegNet(cfg.width)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    ema = WeightAverage(model, cfg.ema_decay)
    print(f"{len(xt)} patches, {len(xv)} for validation, ema decay {cfg.ema_decay}", flush=True)
    rows = []
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(xt)).split(cfg.batch):
            logits = model(xt[idx])
            loss = soft_dice(logits, mt[idx]).mean() + F.binary_cross_entropy_with_logits(logits, mt[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model)
            total += loss.item() * len(idx)
        raw = dice(model, xv, mv)
        with ema.applied_to(model) as averaged:
            avg = dice(averaged, xv, mv)
        rows.append([epoch, total / len(xt), raw, avg])
        print(f"epoch {epoch}  loss {total / len(xt):.4f}  dice raw {raw:.5f}  dice ema {avg:.5f}", flush=True)
    with open("metrics.csv", "w", newline="") as f:
        csv.writer(f).writerows([["epoch", "loss", "dice_raw", "dice_ema"], *rows])
    with ema.applied_to(model):
        torch.save(model.state_dict(), "segnet_ema.pt")


if __name__ == "__main__":
    main()
