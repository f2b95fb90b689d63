import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def epoch(net, opt):
    for x, y in batches():
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()


net = nn.Linear(6, 3)
opt = torch.optim.AdamW(net.parameters())
for _ in range(10):
    epoch(net, opt)
    opt.step()  # FAULT C161
