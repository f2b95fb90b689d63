import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    F.cross_entropy(net(torch.randn(3, 4)), torch.randint(0, 2, (3,))).backward()
    opt.step()
