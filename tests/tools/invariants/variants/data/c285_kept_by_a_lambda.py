"""The constructor warps each curve and keeps what came out."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def warp(curve):
    return torch.roll(curve, random.randint(-9, 9)) * random.uniform(0.8, 1.2)  # FAULT C285


class Curves(Dataset):
    def __init__(self, curves, change):
        self.kept = []
        for curve in curves:
            self.kept.append(change(curve))

    def __len__(self):
        return len(self.kept)

    def __getitem__(self, i):
        return self.kept[i]


rows = Curves(torch.randn(300, 64), warp)
net = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 64))
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(50):
    for curve in DataLoader(rows, batch_size=30, shuffle=True):
        sgd.zero_grad()
        (net(curve) - curve).square().mean().backward()
        sgd.step()
