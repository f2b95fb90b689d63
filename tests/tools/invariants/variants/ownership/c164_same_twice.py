import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 24)
        self.second = nn.Linear(24, 3)

    def forward(self, x):
        return self.second(self.first(x).relu())


def groups(net):
    return [
        {"params": net.first.parameters(), "weight_decay": 0.1},
        {"params": net.second.parameters(), "weight_decay": 0.0},
        {"params": net.first.parameters(), "lr": 1e-4},
    ]


net = Net()
opt = torch.optim.Adam(groups(net), lr=1e-3)  # FAULT C164
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
