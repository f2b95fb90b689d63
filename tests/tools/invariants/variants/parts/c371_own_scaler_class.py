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


class Whiten:
    def fit(self, rows):
        self.mu = rows.mean(dim=0)
        self.sd = rows.std(dim=0)

    def transform(self, rows):
        return (rows - self.mu) / self.sd


def rows(n):
    x = torch.rand(n, 6) * 9
    return x, x.sum(1)


x, y = rows(2000)
w = Whiten()
w.fit(x)  # FAULT C371 (low)
x = w.transform(x)
train, val = random_split(TensorDataset(x, y), [1600, 400])
run(DataLoader(train, 32, shuffle=True), DataLoader(val, 100))
