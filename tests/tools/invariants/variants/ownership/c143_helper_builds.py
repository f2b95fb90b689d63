import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self, levels=3):
        super().__init__()
        self.head = nn.Linear(16, 3)
        self._build(levels)

    def _build(self, levels):
        made = []
        for level in range(levels):
            made.append(nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
        self.levels = made  # FAULT C143

    def forward(self, x):
        for level in self.levels:
            x = level(x)
        return self.head(x)


pyramid = Pyramid()
opt = torch.optim.SGD(pyramid.parameters(), lr=0.1)
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(pyramid(x), y).backward()
    opt.step()
