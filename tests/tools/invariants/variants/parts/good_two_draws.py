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


def main():
    w = torch.randn(6)
    x, tx = torch.randn(1000, 6), torch.randn(1000, 6)
    y, ty = x @ w + 0.1 * torch.randn(1000), tx @ w + 0.1 * torch.randn(1000)
    run(DataLoader(TensorDataset(x, y), 32, shuffle=True), DataLoader(TensorDataset(tx, ty), 32))


main()
