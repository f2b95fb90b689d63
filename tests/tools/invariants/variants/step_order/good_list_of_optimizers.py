"""List of optimizers."""
import torch
from torch import nn


def train(loader):
    enc, dec = (nn.Linear(8, 4), nn.Linear(4, 8))
    opts = [torch.optim.Adam(m.parameters()) for m in (enc, dec)]
    for x in loader:
        for o in opts:
            o.zero_grad()
        loss = ((dec(enc(x)) - x) ** 2).mean()
        loss.backward()
        for o in opts:
            o.step()
