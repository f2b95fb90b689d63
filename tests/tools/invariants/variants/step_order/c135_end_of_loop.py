import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class T:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=0.1)

    def limit(self):
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), max_norm=1.0)  # FAULT C135

    def go(self):
        for x, y in batches():
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.opt.step()
            self.limit()


T(nn.Linear(6, 3)).go()
