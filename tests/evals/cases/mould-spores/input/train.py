import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from averaging import WeightAverage

CLASSES = 5


def spores(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    r = torch.linspace(-1, 1, 20)
    d = (r[None, :] ** 2 + r[:, None] ** 2).sqrt()
    ring = 0.2 + 0.15 * y.float()[:, None, None]
    img = torch.exp(-((d - ring) / 0.12) ** 2) + 0.9 * torch.randn(n, 20, 20, generator=g)
    return TensorDataset(140 + 45 * img.unsqueeze(1), y)  # grey values of the microscope


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


class SporeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.BatchNorm2d(1)
        self.body = nn.Sequential(block(1, 12), block(12, 24))
        self.head = nn.Linear(24 * 25, CLASSES)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).flatten(1))


@torch.no_grad()
def accuracy(f, loader):
    return sum((f(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    torch.manual_seed(2)
    train = DataLoader(spores(1600, 1), batch_size=32, shuffle=True, drop_last=True)
    val = DataLoader(spores(400, 2), batch_size=100)
    model = SporeNet()
    average = WeightAverage(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
    print("epoch,train_loss,train_acc,val_acc", file=sys.stdout)
    for epoch in range(8):
        model.train()
        loss_sum, hits = 0.0, 0
        for x, y in train:
            out = model(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
            loss_sum += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        sched.step()
        print(f"{epoch},{loss_sum / len(train):.4f},{hits / 1600:.4f},{accuracy(average, val):.4f}")


if __name__ == "__main__":
    main()
