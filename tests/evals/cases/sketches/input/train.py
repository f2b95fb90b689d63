"""Sketch classifier, plain loop. Validates once before training to get the baseline row."""
import argparse
import time
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--depth", type=int, default=3)
    ap.add_argument("--width", type=int, default=20)
    return ap.parse_args()


def sketches(n, seed):
    """Ink density maps, 10-bit camera values."""
    g = torch.Generator().manual_seed(12)
    strokes = (torch.rand(9, 1, 10, 10, generator=g) < 0.25).float()
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 9, (n,), generator=g)
    x = 650 * strokes[y] + 225 * torch.randn(n, 1, 10, 10, generator=g)
    return TensorDataset(x.clamp(0, 1023), y)


class Stack(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        layers, c = [], 1
        for _ in range(depth):
            layers += [nn.Conv2d(c, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
            c = width
        self.f = nn.Sequential(nn.BatchNorm2d(1), *layers, nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Dropout(0.2))
        self.g = nn.Linear(width * 25, 9)

    def forward(self, x):
        return self.g(self.f(x))


def validate(net, loader, crit):
    net.eval()
    tot, hit, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            o = net(x)
            tot += crit(o, y).item() * len(y)
            hit += (o.argmax(1) == y).sum().item()
            n += len(y)
    return tot / n, hit / n


def main():
    args = get_args()
    torch.manual_seed(0)
    tr = DataLoader(sketches(1000, 1), 50, shuffle=True)
    va = DataLoader(sketches(300, 2), 100)
    net = Stack(args.depth, args.width)
    crit = nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    net.train()
    vl, acc = validate(net, va, crit)
    print(f"baseline  val_loss={vl:.4f} val_acc={acc:.3f}")
    for ep in range(args.epochs):
        t0, s = time.time(), 0.0
        for x, y in tr:
            opt.zero_grad()
            l = crit(net(x), y)
            l.backward()
            opt.step()
            s += l.item()
        vl, acc = validate(net, va, crit)
        print(f"E{ep + 1:02d}  loss={s / len(tr):.4f}  val_loss={vl:.4f}  val_acc={acc:.3f}  ({time.time() - t0:.1f}s)")


if __name__ == "__main__":
    main()
