import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


@torch.no_grad()
def score(net):
    net.eval()  # FAULT C166
    return (net(torch.randn(8, 6)).argmax(1) == 0).float().mean()


def fit(net, epochs):
    opt = torch.optim.AdamW(net.parameters())
    print("baseline", score(net))
    for _ in range(epochs):
        for x, y in batches():
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()


fit(network(), 5)
