"""Running means by class whose counts are bounded, asked for, or only told."""

import torch
from torch import nn


class Prototypes(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.register_buffer("means", torch.zeros(classes, width))
        self.register_buffer("seen", torch.zeros(classes))
        self.register_buffer("other", torch.zeros(classes, width))

    @torch.no_grad()
    def follow(self, features, labels):
        belongs = nn.functional.one_hot(labels, len(self.means)).float()
        counted = belongs.sum(dim=0)
        fresh = belongs.T @ features / counted.clamp(min=1)[:, None]
        self.means.lerp_(torch.where(counted[:, None] > 0, fresh, self.means), 0.1)
        self.other.lerp_(belongs.T @ features / (counted[:, None] + 1e-6), 0.1)
        self.seen.add_(counted)
        present = counted > 0
        self.other[present] = (belongs.T @ features)[present] / counted[present][:, None]
        print("share of each", belongs.sum(0) / belongs.sum())

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
