"""More registrations over and over: in a training step of Lightning, by a function of a function, on a sub-module."""
import torch
from torch import nn


def update(net, opt, x, y):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


def attach(layer, seen):
    layer.register_forward_hook(lambda m, i, o: seen.append(o.mean().item()))


def attach_all(net, seen):
    for layer in net.children():
        attach(layer, seen)  # FAULT C310


def of_helpers(net, opt, loader):
    for epoch in range(5):
        seen = []
        attach_all(net, seen)
        for x, y in loader:
            update(net, opt, x, y)
        print(epoch, sum(seen))


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train_step(self, x, y):
        self.net[0].weight.register_hook(lambda g: g / g.norm())
        update(self.net, self.opt, x, y)

    def fit(self, loader):
        for x, y in loader:
            self.train_step(x, y)  # FAULT C310


def run(loader):
    Trainer().fit(loader)
