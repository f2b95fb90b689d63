import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

g, d = nn.Linear(2, 4), nn.Linear(4, 1)
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for _ in range(6):
    real, z = torch.randn(3, 4), torch.randn(3, 2)
    od.zero_grad()
    loss = F.softplus(-d(real)).mean() + F.softplus(d(g(z).detach())).mean()
    loss.backward()
    od.step()
    og.zero_grad()
    F.softplus(-d(g(z))).mean().backward()
    og.step()
