import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def optimise(loss):
    opt.zero_grad()
    opt.step()  # FAULT C161
    loss.backward()


for x, y in batches():
    optimise(nn.functional.cross_entropy(net(x), y))
