import torch
from torch import nn

net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(100):
    at = torch.randn(8, 3).requires_grad_()
    energy = net(at)
    forces = torch.autograd.grad(energy.sum(), at, create_graph=True)[0]
    loss = forces.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
