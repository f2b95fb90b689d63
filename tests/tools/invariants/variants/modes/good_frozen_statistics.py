import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


trunk, head = network(), nn.Linear(3, 2)
for p in trunk.parameters():
    p.requires_grad = False
trunk.eval()
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for x, y in batches():
    opt.zero_grad()
    F.cross_entropy(head(trunk(x)), y % 2).backward()
    opt.step()
