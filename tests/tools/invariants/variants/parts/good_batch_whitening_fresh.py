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


def white(z):
    return (z - z.mean(0)) / (z.std(0) + 1e-5)


def batch(n):
    x = torch.randn(n, 6)
    return white(x), x.sum(1)


net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(100):
    x, y = batch(64)
    loss = nn.functional.mse_loss(net(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        with torch.no_grad():
            vx, vy = batch(256)
            print("val", nn.functional.mse_loss(net(vx).squeeze(1), vy).item())
