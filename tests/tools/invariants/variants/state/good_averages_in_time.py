"""An average over a hundred of ten thousand steps, a target network that is slow on purpose, a momentum of a loss."""
import copy

import torch
from torch import nn

net = nn.Linear(5, 1)
average, target = copy.deepcopy(net), copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters())
level = 0.0
for _ in range(10_000):
    x = torch.rand(16, 5)
    with torch.no_grad():
        goal = 0.9 * target(x) + x.mean(1, keepdim=True)
    loss = (net(x) - goal).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    level = 0.99 * level + 0.01 * loss.item()
    with torch.no_grad():
        for a, t, p in zip(average.parameters(), target.parameters(), net.parameters()):
            a.mul_(0.99).add_(p, alpha=0.01)
            t.lerp_(p, 1e-5)
average.eval()
print(average(torch.rand(2, 5)), level)
