import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class Loop:
    WINDOW = 8

    def __init__(self):
        self.net = nn.Linear(6, 3)
        self.opt = torch.optim.Adam(self.net.parameters())
        self.seen = 0

    def micro(self, x, y):
        self.net.zero_grad()  # FAULT C113
        (nn.functional.cross_entropy(self.net(x), y) / self.WINDOW).backward()
        self.seen += 1
        if self.seen % self.WINDOW == 0:
            self.opt.step()


loop = Loop()
for x, y in batches():
    loop.micro(x, y)
