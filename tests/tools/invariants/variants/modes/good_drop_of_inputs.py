import torch
from torch import nn
from torch.nn import functional as F


def corrupted(x):
    return F.dropout(x, 0.2)


net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(8, 4)
    opt.zero_grad()
    F.mse_loss(net(corrupted(x)), x).backward()
    opt.step()
