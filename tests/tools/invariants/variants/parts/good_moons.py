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


def moons(n, rng):
    t = rng.uniform(0, np.pi, n)
    x = np.concatenate([np.stack([np.cos(t), np.sin(t)], 1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], 1)])
    y = np.concatenate([np.zeros(n), np.ones(n)])
    return torch.tensor(x).float(), torch.tensor(y).float()


x, y = moons(500, np.random.default_rng(0))
data = TensorDataset(x, y)
train, val = random_split(data, [800, 200])
run(DataLoader(train, 32, shuffle=True), DataLoader(val, 100), 2)
