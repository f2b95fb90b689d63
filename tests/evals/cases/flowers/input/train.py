import csv

import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

N_CLASSES = 8


def flowers(n, seed):
    proto = F.interpolate(torch.randn(N_CLASSES, 3, 5, 5, generator=torch.Generator().manual_seed(3)), size=16)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, N_CLASSES, (n,), generator=g)
    return TensorDataset(proto[y] + 0.8 * torch.randn(n, 3, 16, 16, generator=g), y)


class Augment:
    def __init__(self, cfg):
        self.beta = torch.distributions.Beta(cfg["mixup_alpha"], cfg["mixup_alpha"])
        self.noise, self.flip = cfg["noise"], cfg["flip"]

    def __call__(self, x, y):
        if self.flip and torch.rand(()) < 0.3:
            x = x + 0.3 * x.flip(-1)
        x = x + self.noise * torch.randn_like(x)
        lam = self.beta.sample().item()
        perm = torch.randperm(len(x))
        return lam * x + (1 - lam) * x[perm], y, y[perm], lam


class FlowerNet(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width * 16, N_CLASSES),
        )

    def forward(self, x):
        return self.net(x)


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    acc = Accelerator(cpu=True)
    torch.manual_seed(cfg["seed"])
    net = FlowerNet(**cfg["model"])
    o = cfg["optimizer"]
    opt = torch.optim.SGD(net.parameters(), lr=o["lr"], momentum=o["momentum"], weight_decay=o["weight_decay"], nesterov=True)
    train_dl = DataLoader(flowers(1600, 1), batch_size=cfg["batch_size"], shuffle=True, drop_last=True)
    val_dl = DataLoader(flowers(500, 2), batch_size=250)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=o["lr"], total_steps=cfg["epochs"] * len(train_dl))
    net, opt, train_dl, val_dl, sched = acc.prepare(net, opt, train_dl, val_dl, sched)
    augment = Augment(cfg["augment"])
    smooth = cfg["loss"]["label_smoothing"]
    with open("metrics.csv", "w", newline="") as fh:
        w = csv.writer(fh)
        w.writerow(["epoch", "lr", "train_loss", "train_acc", "val_loss", "val_acc"])
        for epoch in range(cfg["epochs"]):
            net.train()
            tl, ta = 0.0, 0.0
            for x, y in train_dl:
                xm, ya, yb, lam = augment(x, y)
                out = net(xm)
                loss = lam * F.cross_entropy(out, ya, label_smoothing=smooth) + (1 - lam) * F.cross_entropy(out, yb, label_smoothing=smooth)
                opt.zero_grad()
                acc.backward(loss)
                acc.clip_grad_norm_(net.parameters(), 2.0)
                opt.step()
                sched.step()
                p = out.argmax(1)
                ta += (lam * (p == ya).float().mean() + (1 - lam) * (p == yb).float().mean()).item() / len(train_dl)
                tl += loss.item() / len(train_dl)
            net.eval()
            vl = va = 0.0
            with torch.no_grad():
                for x, y in val_dl:
                    out = net(x)
                    vl += F.cross_entropy(out, y, reduction="sum").item() / 500
                    va += (out.argmax(1) == y).sum().item() / 500
            lr = sched.get_last_lr()[0]
            w.writerow([epoch, f"{lr:.6f}", f"{tl:.5f}", f"{ta:.4f}", f"{vl:.5f}", f"{va:.4f}"])
            acc.print(f"{epoch:3d} | lr {lr:.4f} | train loss {tl:.4f} acc {ta:.3f} | val loss {vl:.4f} acc {va:.3f}")


if __name__ == "__main__":
    main()
