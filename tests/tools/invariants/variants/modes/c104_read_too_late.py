import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


def score(net, held):
    net.eval()
    mode = net.training
    with torch.no_grad():
        hits = sum((net(x).argmax(-1) == y).sum().item() for x, y in held)
    net.train(mode)  # FAULT C104
    return hits


def main(batches, held):
    net = network()
    net.train()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(10):
        for x, y in batches:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        print(epoch, score(net, held))


main([], [])
