"""The noise that is added is the one that is asked for; a denoiser of clean targets draws what it likes."""
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)


def mixed(x, z, t):
    return (1 - t) * x + t * z


for _ in range(1000):
    x, t = torch.rand(64, 2), torch.rand(64, 1)
    z = torch.randn_like(x)
    loss = nn.functional.mse_loss(net(mixed(x, z, t)), z)
    loss = loss + nn.functional.mse_loss(net(x + 0.1 * torch.randn_like(x)), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
