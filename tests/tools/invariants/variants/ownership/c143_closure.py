import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, wide=64):
        super().__init__()
        inner = nn.Linear(8, wide)
        self.lift = lambda x: inner(x).relu()  # FAULT C143
        self.out = nn.Linear(wide, 1)

    def forward(self, x):
        return self.out(self.lift(x))


def train(loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
