"""Registered before the loop, once, on what is made in the loop, or on a tensor."""
import torch
from torch import nn


def fit(net, opt, loader, hook):
    net.register_forward_hook(hook)
    for step, (x, y) in enumerate(loader):
        if step == 0:
            net.register_forward_hook(hook)
        out = net(x)
        out.register_hook(lambda g: g * 2)
        loss = nn.functional.mse_loss(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()


class Watcher:
    def __init__(self):
        self.watched = False

    def watch(self, net, hook):
        if not self.watched:
            net.register_forward_hook(hook)
            self.watched = True


def lazily(net, opt, loader, hook, watcher=None):
    watcher = watcher or Watcher()
    for x, y in loader:
        watcher.watch(net, hook)
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def several(loader, hook):
    for width in (8, 16, 32):
        net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))
        opt = torch.optim.Adam(net.parameters())
        net[1].register_forward_hook(hook)
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()


def ensemble(nets, opts, loader, hook):
    for net, opt in zip(nets, opts):
        net.register_forward_hook(hook)
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
