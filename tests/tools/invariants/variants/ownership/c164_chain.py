import itertools

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 24)
        self.second = nn.Linear(24, 3)

    def forward(self, x):
        return self.second(self.first(x).relu())


net = Net()
everything = itertools.chain(net.parameters(), net.first.parameters())
opt = torch.optim.SGD(everything, lr=1e-3)  # FAULT C164
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
