import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
opt = torch.optim.NAdam(net.parameters())
for _ in range(6):
    x = torch.randn(3, 4)
    loss = F.binary_cross_entropy(net(x), (x.sum(1, keepdim=True) > 0).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
