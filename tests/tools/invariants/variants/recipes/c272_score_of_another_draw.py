"""A score network for two-dimensional points; the helper that perturbs them draws for itself."""
import torch
from torch import nn


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, s):
        return self.layers(torch.cat([x, s], 1))


def perturbed(points, sigma):
    return points + sigma * torch.randn_like(points)


def train(points, steps=2000):
    net, criterion = Score(), nn.MSELoss()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(steps):
        sigma = torch.rand(len(points), 1)
        z = torch.randn_like(points)
        guess = net(perturbed(points, sigma), sigma)
        loss = criterion(guess, z)  # FAULT C272
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net


train(torch.rand(256, 2))
