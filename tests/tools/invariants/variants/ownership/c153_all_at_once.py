import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(12, 24)
        self.classifier = nn.Linear(24, 3)

    def forward(self, x):
        return self.classifier(self.trunk(x).relu())


net = Net()
net.requires_grad_(False)  # FAULT C153
net.trunk.requires_grad_(True)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
