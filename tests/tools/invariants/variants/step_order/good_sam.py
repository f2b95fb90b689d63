import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in batches():
    nn.functional.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        moves = [p.grad * 0.05 / (p.grad.norm() + 1e-12) for p in net.parameters()]
        for p, e in zip(net.parameters(), moves):
            p.add_(e)
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    with torch.no_grad():
        for p, e in zip(net.parameters(), moves):
            p.sub_(e)
    opt.step()
    opt.zero_grad()
