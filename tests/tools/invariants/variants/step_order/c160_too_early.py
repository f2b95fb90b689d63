import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in batches():
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        params = list(net.parameters())
        nn.utils.clip_grad_norm_(params, 1.0)  # FAULT C160
        loss.backward()
        opt.step()
