import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(12, 24)
        self.two = nn.Linear(24, 3)

    def forward(self, x):
        return self.two(self.one(x).relu())


class Learner:
    def __init__(self, path):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        if path is not None:
            self.net.load_state_dict(torch.load(path), strict=False, assign=True)  # FAULT C289

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.opt.step()


Learner("net.pt").fit([])
