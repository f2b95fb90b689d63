import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


def load(path):
    net = network()
    net.load_state_dict(torch.load(path))
    net.eval()  # FAULT C166
    return net


net = load("start.pt")
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in batches():
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
