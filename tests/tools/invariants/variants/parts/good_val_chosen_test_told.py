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


import copy


def part(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return DataLoader(TensorDataset(x, x.sum(1)), 50)


class Learner:
    def __init__(self, net, train, val, test):
        self.net, self.train, self.val, self.test = net, train, val, test
        self.opt = torch.optim.SGD(net.parameters(), lr=0.01)
        self.crit = nn.MSELoss()

    def measure(self, loader):
        with torch.no_grad():
            return sum(self.crit(self.net(x).squeeze(1), y).item() for x, y in loader) / len(loader)

    def fit(self):
        best, keep = 1e9, None
        for _ in range(9):
            for x, y in self.train:
                self.opt.zero_grad()
                self.crit(self.net(x).squeeze(1), y).backward()
                self.opt.step()
            val = self.measure(self.val)
            if val < best:
                best, keep = val, copy.deepcopy(self.net.state_dict())
        self.net.load_state_dict(keep)
        return self.measure(self.test)


train, val, test = (part(n, s) for s, n in enumerate((1000, 200, 200)))
print("test loss", Learner(nn.Linear(6, 1), train, val, test).fit())
