import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def run(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i, (x, y) in enumerate(batches()):
        if i == 0:
            opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()  # FAULT C101


run(nn.Linear(6, 3))
