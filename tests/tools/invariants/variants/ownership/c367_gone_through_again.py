"""Iterators that the first one uses up: nothing is frozen, and the penalty of each later batch is that of no weights."""

import torch
from torch import nn


def main(loader):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    early = (p for n, p in net.named_parameters() if n.startswith("0"))
    print(sum(p.numel() for p in early), "weights are frozen")
    for p in early:  # FAULT C367
        p.requires_grad_(False)
    weights = filter(lambda p: p.ndim > 1, net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        penalty = sum((p ** 2).sum() for p in weights)  # FAULT C367
        loss = nn.functional.cross_entropy(net(x), y) + 1e-4 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
