import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))


def validate(net, held):
    net.train()
    right = 0
    with torch.no_grad():
        for x, y in held:
            right += (net(x).argmax(-1) == y).sum().item()  # FAULT C165
    return right


def main(batches, held):
    net = network()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(10):
        net.train()
        for x, y in batches:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        print(epoch, validate(net, held))


main([], [])
