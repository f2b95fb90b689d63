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


def rows(n, seed):
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(seed))
    return x, x.sum(1)


x, y = rows(1000, 0)
a, b = x[:800], y[:800]
c, d = x[800:], y[800:]
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(50):
    loss = nn.functional.mse_loss(net(a).squeeze(1), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        held = nn.functional.mse_loss(net(c).squeeze(1), d)
    print(epoch, loss.item(), "val", held.item())
