import copy
import torch
from torch import nn


class Average:
    def __init__(self, net):
        self.net = copy.deepcopy(net)
        for p in self.net.parameters():
            p.requires_grad_(False)


    def update(self, net):
        with torch.no_grad():
            for a, b in zip(self.net.parameters(), net.parameters()):
                a.mul_(0.99).add_(b, alpha=0.01)


def train(loader, val):
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2), nn.Linear(4, 1))
    teacher = copy.deepcopy(net)
    avg = Average(net)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(4):
        net.train()
        for x, y in loader:
            with torch.no_grad():
                t = teacher(x)
            loss = (net(x) - y).pow(2).mean() + (net(x) - t).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            avg.update(net)
            for a, b in zip(teacher.parameters(), net.parameters()):
                a.data.lerp_(b.data, 0.01)
        with torch.no_grad():
            print(sum(float((avg.net(x) - y).abs().mean()) for x, y in val))  # FAULT C165
