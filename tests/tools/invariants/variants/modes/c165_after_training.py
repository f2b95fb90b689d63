import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


def train(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net.train()
    for x, y in batches():
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    return net


def test(net):
    with torch.no_grad():
        return sum((net(x).argmax(1) == y).sum().item() for x, y in batches(8))  # FAULT C165


print(test(train(network())))
