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


class Scale:
    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0)
        return self

    def __call__(self, x):
        return (x - self.mean) / self.std


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=g)
    return x, x.sum(1)


x, y = make(1000, 0)
tx, ty = make(200, 1)
scale = Scale().fit(x)
run(DataLoader(TensorDataset(scale(x), y), 32, shuffle=True), DataLoader(TensorDataset(scale(tx), ty), 32))
