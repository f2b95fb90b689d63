import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class F:
    def __init__(self):
        self.net = nn.Linear(6, 3)

    def optimizer(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)  # FAULT C151

    def fit(self):
        for x, y in batches():
            opt = self.optimizer()
            nn.functional.cross_entropy(self.net(x), y).backward()
            opt.step()
            opt.zero_grad()


F().fit()
