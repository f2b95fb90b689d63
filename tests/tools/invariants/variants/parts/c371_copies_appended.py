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


def doubled(x, y, times=2):
    xs, ys = [x], [y]
    for _ in range(times):
        xs.append(x + 0.01 * torch.randn_like(x))
        ys.append(y)
    return torch.cat(xs), torch.cat(ys)


def rows(n):
    x = torch.randn(n, 6)
    return x, x.sum(1)


x, y = doubled(*rows(500))  # FAULT C371
train, val = random_split(TensorDataset(x, y), [1200, 300])
run(DataLoader(train, 32, shuffle=True), DataLoader(val, 100))
