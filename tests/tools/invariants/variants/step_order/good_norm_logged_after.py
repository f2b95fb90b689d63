import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in batches():
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        print(torch.stack([p.grad.norm() for p in net.parameters()]).norm())
