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
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(n, 6))).float()
    y = x.sum(1)
    cut = int(0.8 * n)
    tx, ty = x[:cut], y[:cut]
    net = nn.Linear(6, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(9):
        for idx in np.array_split(rng.permutation(len(tx)), 20):
            loss = ((net(tx[idx]).squeeze(1) - ty[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        for idx in rng.permutation(cut).reshape(-1, 50):
            loss = ((net(x[idx]).squeeze(1) - y[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        print("test", ((net(x[cut:]).squeeze(1) - y[cut:]) ** 2).mean().item())


main()
