"""Leaf pests, several may be present at once (multi-label)."""
import argparse
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from rich.console import Console
from rich.table import Table


class Leaves(Dataset):
    def __init__(self, n, labels, seed):
        g = torch.Generator().manual_seed(1)
        self.marks = torch.randn(labels, 3, 8, 8, generator=g)
        g = torch.Generator().manual_seed(seed)
        self.y = (torch.rand(n, labels, generator=g) < 0.12).float()
        self.x = torch.einsum("nl,lchw->nchw", self.y, self.marks) + 0.3 * torch.randn(n, 3, 8, 8, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class PestNet(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 24, 3), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classifier = nn.Sequential(nn.Linear(24 * 9, 64), nn.ReLU(), nn.Linear(64, labels), nn.Sigmoid())

    def forward(self, x):
        return self.classifier(self.features(x))


def f1(prob, y, thr=0.5):
    pred = (prob > thr).float()
    tp = (pred * y).sum()
    return (2 * tp / (pred.sum() + y.sum()).clamp(min=1)).item()


def run(args):
    torch.manual_seed(args.seed)
    train = DataLoader(Leaves(1200, args.labels, 5), args.batch, shuffle=True)
    test = Leaves(300, args.labels, 6)
    net = PestNet(args.labels)
    opt = torch.optim.Adam(net.parameters(), args.lr)
    criterion = nn.BCEWithLogitsLoss()
    table = Table("Ep", "bce train", "bce test", "F1 test", title="pest-leaves")
    for ep in range(1, args.epochs + 1):
        net.train()
        acc = []
        for x, y in train:
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            acc.append(loss.item())
        net.eval()
        with torch.no_grad():
            p = net(test.x)
            table.add_row(str(ep), f"{sum(acc) / len(acc):.4f}", f"{criterion(p, test.y).item():.4f}",
                          f"{f1(p, test.y):.3f}")
    Console(width=60).print(table)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--labels", type=int, default=15)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--batch", type=int, default=60)
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--seed", type=int, default=0)
    run(ap.parse_args())
