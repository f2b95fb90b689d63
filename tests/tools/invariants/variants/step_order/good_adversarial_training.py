import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in batches():
    x.requires_grad_(True)
    nn.functional.cross_entropy(net(x), y).backward()
    attacked = (x + 0.1 * x.grad.sign()).detach()
    opt.zero_grad()
    nn.functional.cross_entropy(net(attacked), y).backward()
    opt.step()
