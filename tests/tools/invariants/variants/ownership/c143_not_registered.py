import torch
from torch import nn


class Mixer:
    def __init__(self, width):
        self.inner = nn.Linear(width, width)

    def __call__(self, x):
        return torch.relu(self.inner(x))


class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.mix = Mixer(width)  # FAULT C143
        self.query = nn.Parameter(torch.randn(width)) / width ** 0.5  # FAULT C143
        self.gain = torch.ones(width)  # FAULT C143
        self.token = torch.zeros(1, width).requires_grad_()  # FAULT C143
        self.norm = nn.LayerNorm(width)
        self.classes = classes

    def forward(self, x):
        x = self.norm(self.mix(x + self.token)) * self.gain
        out = nn.Linear(x.shape[-1], self.classes)  # FAULT C143
        return out(x * self.query)


def fit(batches):
    net = Net(16, 4)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x, y in batches:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
