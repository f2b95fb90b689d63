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


def main(n=1000):
    w = torch.randn(6)
    x, tx = torch.randn(n, 6), torch.randn(n, 6)
    y, ty = x @ w, tx @ w
    net = nn.Linear(6, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(9):
        perm = torch.randperm(n)
        for i in range(0, n, 50):
            idx = perm[i:i + 50]
            loss = ((net(x[idx]).squeeze(1) - y[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        some = torch.randperm(n)[:100]
        with torch.no_grad():
            print("test", ((net(tx[some]).squeeze(1) - ty[some]) ** 2).mean().item())


main()
