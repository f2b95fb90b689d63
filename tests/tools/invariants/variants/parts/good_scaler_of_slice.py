import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split, Dataset, ConcatDataset, Subset


def run(train, held, dim=6, epochs=5):
    net = nn.Linear(dim, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        for x, y in train:
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x).squeeze(1), y)
            loss.backward()
            opt.step()
        with torch.no_grad():
            err = sum(nn.functional.mse_loss(net(x).squeeze(1), y).item() for x, y in held) / len(held)
        print(f"epoch {epoch} val {err:.3f}")


class MinMax:
    def __init__(self, s):
        self.lo, self.hi = s.min(), s.max()

    def scale(self, v):
        return (v - self.lo) / (self.hi - self.lo)


x = torch.rand(3000, 6)
y = x.sum(1)
a, b = x[:2000], x[2000:]
mm = MinMax(a)
run(DataLoader(TensorDataset(mm.scale(a), y[:2000]), 32, shuffle=True), DataLoader(TensorDataset(mm.scale(b), y[2000:]), 32))
