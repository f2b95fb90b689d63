"""Hooks that keep numbers, the newest, or what is emptied in each step."""
from collections import deque

import torch
from torch import nn


def train(net, loader, taps):
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        taps.clear()
        loss = nn.functional.mse_loss(net(x), y) + 0.01 * sum(t.abs().mean() for t in taps)
        opt.zero_grad()
        loss.backward()
        opt.step()


def main(loader):
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    taps, means, newest, recent, few = [], [], {}, deque(maxlen=8), []
    net[0].register_forward_hook(lambda m, i, o: taps.append(o))
    net[1].register_forward_hook(lambda m, i, o: means.append(o.mean().item()))
    net[1].register_forward_hook(lambda m, i, o: means.append(o.detach().norm()))
    net[1].register_forward_hook(lambda m, i, o: newest.__setitem__("relu", o))
    net[2].register_forward_hook(lambda m, i, o: recent.append(o))

    def some(module, args, output):
        if len(few) < 10:
            few.append(output)
        newest["last"] = output

    net[2].register_forward_hook(some)
    train(net, loader, taps)
