import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    x, y = torch.randn(3, 4), torch.randint(0, 2, (3,))
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
