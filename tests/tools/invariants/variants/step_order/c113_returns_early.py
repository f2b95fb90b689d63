import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.Adam(net.parameters())


def one(index, x, y, every):
    opt.zero_grad()  # FAULT C113
    nn.functional.cross_entropy(net(x), y).div(every).backward()
    if (index + 1) % every:
        return
    opt.step()


for i, (x, y) in enumerate(batches()):
    one(i, x, y, 4)
