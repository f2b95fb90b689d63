"""Networks in a dict, whose modes a function sets; training mode is set once, before all epochs."""
import torch
from torch import nn

nets = {"enc": nn.Sequential(nn.Linear(20, 64), nn.Dropout(0.2)), "dec": nn.Linear(64, 20)}
opt = torch.optim.Adam([p for n in nets.values() for p in n.parameters()], lr=1e-3)


def set_mode(train):
    for n in nets.values():
        n.train(train)  # FAULT C104


def batch_loss(x):
    return ((nets["dec"](nets["enc"](x)) - x) ** 2).mean()


def loop(train, val):
    set_mode(True)
    for epoch in range(30):
        for x in train:
            opt.zero_grad()
            batch_loss(x).backward()
            opt.step()
        set_mode(False)
        with torch.no_grad():
            print(epoch, sum(batch_loss(x).item() for x in val))
