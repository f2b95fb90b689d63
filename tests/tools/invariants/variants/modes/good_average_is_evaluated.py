import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


import copy

net = network()
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    for x, y in batches():
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(average.parameters(), net.parameters()):
                a.lerp_(b, 0.01)
            for a, b in zip(average.buffers(), net.buffers()):
                a.copy_(b)
    average.eval()
    with torch.no_grad():
        print(average(torch.randn(8, 6)).argmax(1))
