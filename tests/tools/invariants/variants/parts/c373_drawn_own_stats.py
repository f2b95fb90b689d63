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


def centred(x):
    return (x - x.mean(dim=(0, 1), keepdim=True)) / x.std(dim=(0, 1), keepdim=True)  # FAULT C373


def part(n, seed, shift=0.0):
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(seed)) + shift
    return DataLoader(TensorDataset(centred(x), x.sum(1)), 32)


run(part(1000, 0), part(200, 1, 2.0))
