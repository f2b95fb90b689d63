"""What a resumed job restores is put into a copy of its state; the network is compiled, and the eager one is trained."""

from typing import NamedTuple

import torch
from torch import nn


class Progress(NamedTuple):
    epoch: int
    best: float


def resumed(progress, path):
    stored = torch.load(path, weights_only=True)
    progress._replace(epoch=stored["epoch"])  # FAULT C366
    return progress


def train(loader, path):
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    torch.compile(net)  # FAULT C366
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    torch.manual_seed(0)
    progress = resumed(Progress(0, 1e9), path)
    for _ in range(progress.epoch, 10):
        for x, y in loader:
            optimizer.zero_grad()
            weights = torch.ones(len(x))
            weights.masked_fill(y.isnan(), 0.0)  # FAULT C366
            loss = (weights * (net(x)[:, 0] - y.nan_to_num()) ** 2).mean()
            loss.backward()
            optimizer.step()
