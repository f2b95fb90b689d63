import torch
import torch.nn as nn


class Pool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, frames):
        scores = self.second(torch.tanh(self.first(frames)))
        scores = scores / 8.0
        weights = scores.softmax(dim=-1)  # FAULT C230
        return (weights * frames).sum(1)


class Certain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 1), nn.Softmax(dim=-1))
        self.pool = Pool(width)

    def forward(self, x):
        return self.body(self.pool(x))  # FAULT C230


net = Certain(8)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy(net(torch.randn(4, 5, 8)), torch.ones(4, 1)).backward()
    optimizer.step()
