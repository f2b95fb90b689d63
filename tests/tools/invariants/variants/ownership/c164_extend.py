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
weights = list(net.parameters())
weights.extend(net.second.parameters())
opt = torch.optim.Adam(weights, lr=1e-3)  # FAULT C164
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
