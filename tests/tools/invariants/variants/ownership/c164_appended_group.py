import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 24)
        self.second = nn.Linear(24, 3)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Trainer:
    def __init__(self):
        self.net = Net()
        groups = [{"params": self.net.parameters()}]
        groups.append({"params": self.net.second.parameters(), "lr": 1e-2})
        self.opt = torch.optim.RMSprop(groups, lr=1e-3)  # FAULT C164

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.opt.step()


Trainer().fit([])
