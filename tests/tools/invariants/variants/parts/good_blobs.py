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


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 3, (4, 6))
    parts = [c + rng.normal(0, 1, (n, 6)) for c in centres]
    x = torch.tensor(np.concatenate(parts)).float()
    return x, torch.arange(4).repeat_interleave(n).float()


x, y = blobs(300, 0)
train, val = random_split(TensorDataset(x, y), [1000, 200])
run(DataLoader(train, 32, shuffle=True), DataLoader(val, 100))
