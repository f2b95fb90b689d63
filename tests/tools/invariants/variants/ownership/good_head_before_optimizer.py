import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 100)

    def forward(self, x):
        return self.head(self.body(x).relu())

    def configure(self, classes):
        self.head = nn.Linear(8, classes)
        return torch.optim.Adam(self.parameters(), lr=1e-3)


net = Net()
first = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in []:
    first.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    first.step()
second = net.configure(5)
for x, y in []:
    second.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    second.step()
