import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


every = 4
net = nn.Linear(6, 3)
opt = torch.optim.AdamW(net.parameters())
for i, (x, y) in enumerate(batches()):
    (nn.functional.cross_entropy(net(x), y) / every).backward()
    full = i % every == every
    if full:
        opt.step()  # FAULT C161
        opt.zero_grad()
