"""Players by name."""
import torch
from torch import nn


def gan(loader):
    g, d = (nn.Linear(8, 2), nn.Linear(2, 1))
    opts = {'g': torch.optim.Adam(g.parameters()), 'd': torch.optim.Adam(d.parameters())}
    for real in loader:
        for name, opt in opts.items():
            opt.zero_grad()
            fake = g(torch.randn(len(real), 8))
            if name == 'd':
                loss = d(fake.detach()).mean() - d(real).mean()
            else:
                loss = -d(fake).mean()
            loss.backward()
            opt.step()
