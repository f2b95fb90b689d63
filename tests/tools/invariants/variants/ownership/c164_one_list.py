import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(6, 6)
        self.right = nn.Linear(6, 3)

    def forward(self, x):
        return self.right(self.left(x))


def optimizer_of(pair, rate):
    everything = list(pair.parameters()) + list(pair.right.parameters())
    return torch.optim.SGD(everything, lr=rate)  # FAULT C164


pair = Pair()
sgd = optimizer_of(pair, 0.1)
for x, y in []:
    sgd.zero_grad()
    nn.functional.cross_entropy(pair(x), y).backward()
    sgd.step()
