"""Networks in a dict."""
import torch
from torch import nn
nets = {'enc': nn.Sequential(nn.Linear(20, 64), nn.Dropout(0.2)), 'dec': nn.Linear(64, 20)}
opt = torch.optim.Adam([p for n in nets.values() for p in n.parameters()])


def set_mode(train):
    for n in nets.values():
        n.train(train)


def loss_of(x):
    return ((nets['dec'](nets['enc'](x)) - x) ** 2).mean()


def loop(train, val):
    for e in range(30):
        set_mode(True)
        for x in train:
            opt.zero_grad()
            loss_of(x).backward()
            opt.step()
        set_mode(False)
        with torch.no_grad():
            print(sum((loss_of(x).item() for x in val)))
