"""Prototypes are running means of a batch's features by class; a batch without a class divides 0 by 0, and it stays."""

import torch
from torch import nn


class Prototypes(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.register_buffer("means", torch.zeros(classes, width))
        self.register_buffer("spread", torch.ones(classes))

    @torch.no_grad()
    def follow(self, features, labels):
        belongs = nn.functional.one_hot(labels, len(self.means)).float()
        counted = belongs.sum(dim=0)
        fresh = belongs.T @ features / counted[:, None]  # FAULT C138
        self.means = 0.9 * self.means + 0.1 * fresh
        inside = (labels[:, None] == torch.arange(len(self.means))).sum(0)
        self.spread.mul_(0.9).add_(0.1 * (belongs * features.norm(dim=1)[:, None]).sum(0) / inside)  # FAULT C138

    def forward(self, features):
        return -torch.cdist(features, self.means)


def train(net, loader):
    prototypes = Prototypes(30, 16)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        features = net(x)
        prototypes.follow(features.detach(), y)
        loss = nn.functional.cross_entropy(prototypes(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
