"""Copies of all weights in a list, moved a ten-thousandth of the way in each of 600 steps."""
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
slow = [p.detach().clone() for p in net.parameters()]
opt = torch.optim.Adam(net.parameters())
for step in range(600):
    x = torch.rand(40, 6)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for mine, p in zip(slow, net.parameters()):
            mine.lerp_(p, 1e-4)  # FAULT C227
with torch.no_grad():
    for mine, p in zip(slow, net.parameters()):
        p.copy_(mine)
print(net(torch.rand(3, 6)))
