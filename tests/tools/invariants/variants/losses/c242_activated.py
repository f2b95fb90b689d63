"""Scores that passed an activation."""
import torch
import torch.nn.functional as F
from torch import nn


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.act = nn.Linear(8, 16), nn.Linear(16, 3), nn.ReLU()

    def forward(self, x):
        return self.act(self.b(self.act(self.a(x))))


class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


def cut(loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(F.cross_entropy(net(x), y), opt)  # FAULT C242


def bounded(loader):
    net, criterion = Bounded(), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        logits = net(x)
        step(criterion(logits, y), opt)  # FAULT C242


def binary(loader):
    net = nn.Linear(8, 1)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(F.binary_cross_entropy_with_logits(net(x).relu().squeeze(1), y), opt)  # FAULT C242


def binary_bounded(loader):
    net = nn.Linear(8, 1)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        score = torch.tanh(net(x))
        step(nn.BCEWithLogitsLoss()(score, y), opt)  # FAULT C242


def functional(loader):
    net = nn.Linear(8, 5)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        out = F.relu(net(x))
        step(F.cross_entropy(out, y), opt)  # FAULT C242


def capped_at_six(loader):
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 5), nn.ReLU6())
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(F.cross_entropy(net(x), y), opt)  # FAULT C242


def a_list_of_heads(loader):
    heads = nn.ModuleList([nn.Sequential(nn.Linear(8, 2), nn.ReLU()) for _ in range(3)])
    opt = torch.optim.Adam(heads.parameters())
    for x, ys in loader:
        loss = sum(F.cross_entropy(head(x), y) for head, y in zip(heads, ys))  # FAULT C242
        step(loss, opt)


def helper(net, x):
    return torch.tanh(net(x))


def by_a_helper(loader):
    net = nn.Linear(8, 3)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(F.cross_entropy(helper(net, x), y), opt)  # FAULT C242
