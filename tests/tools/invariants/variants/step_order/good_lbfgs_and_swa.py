import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3)
opt = torch.optim.LBFGS(net.parameters(), lr=0.1)
for x, y in batches():
    def closure():
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss
    opt.step(closure)
