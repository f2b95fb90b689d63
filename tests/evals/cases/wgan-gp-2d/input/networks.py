import torch
import torch.nn as nn


class ResBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, dim), nn.LeakyReLU(0.2), nn.Linear(dim, dim))

    def forward(self, x):
        return nn.functional.leaky_relu(x + self.body(x), 0.2)


class Generator(nn.Module):
    def __init__(self, z_dim=8, dim=64, out=2):
        super().__init__()
        self.z_dim = z_dim
        self.main = nn.Sequential(nn.Linear(z_dim, dim), ResBlock(dim), ResBlock(dim), nn.Linear(dim, out))

    def forward(self, z):
        return self.main(z)


class Critic(nn.Module):
    def __init__(self, dim=64, inp=2):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(inp, dim), ResBlock(dim), ResBlock(dim), nn.Linear(dim, 1))

    def forward(self, x):
        return self.main(x).squeeze(-1)


def two_moons(n):
    t = torch.rand(n) * 3.14159
    up = torch.rand(n) > 0.5
    x = torch.where(up, t.cos(), 1 - t.cos())
    y = torch.where(up, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], 1) * 1.2 + 0.07 * torch.randn(n, 2)
