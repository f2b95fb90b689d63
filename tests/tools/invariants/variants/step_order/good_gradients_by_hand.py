"""Healthy: iterators, gradient-free steps, closures, hand-made updates."""
import itertools
import torch
from torch import nn

def a(data):
    net = nn.Linear(3, 3)
    print(sum(p.numel() for p in net.parameters()))
    params = [p for p in net.parameters() if p.requires_grad]
    for p in params:
        nn.init.zeros_(p)
    opt = torch.optim.LBFGS(params)
    def closure():
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(data[0]), data[1])
        loss.backward()
        return loss
    for _ in range(10):
        opt.step(closure)

def b(net, data, sigma=0.1):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in data:
        with torch.no_grad():
            noise = [torch.randn_like(p) for p in net.parameters()]
            for p, n in zip(net.parameters(), noise):
                p.add_(sigma * n)
            up = nn.functional.mse_loss(net(x), y)
            for p, n in zip(net.parameters(), noise):
                p.sub_(2 * sigma * n)
            down = nn.functional.mse_loss(net(x), y)
            for p, n in zip(net.parameters(), noise):
                p.add_(sigma * n)
                p.grad = (up - down) / (2 * sigma) * n
        opt.step()

def c(net, other, data):
    groups = itertools.chain(net.parameters(), other.parameters())
    opt = torch.optim.Adam(groups, 1e-3)
    for x, y in data:
        opt.zero_grad()
        nn.functional.mse_loss(other(net(x)), y).backward()
        nn.utils.clip_grad_norm_(itertools.chain(net.parameters(), other.parameters()), 1.0)
        opt.step()

def d(net, data, verbose):
    params = net.parameters()
    if verbose:
        params = list(params)
        print(len(params))
    opt = torch.optim.Adam(params, 1e-3)
    for x, y in data:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        helper(loss)
        opt.step()

from mylib import helper
