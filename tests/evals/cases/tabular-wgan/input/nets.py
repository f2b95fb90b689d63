import torch
import torch.nn as nn


def table(n, gen=None):
    """Two-mode 4-column sensor table with correlated columns."""
    mode = (torch.rand(n, 1, generator=gen) < 0.4).float()
    base = torch.randn(n, 4, generator=gen)
    mix = torch.tensor([[1.0, 0.6, 0.0, 0.0], [0.0, 0.8, 0.3, 0.0], [0.0, 0.0, 0.9, -0.4], [0.0, 0.0, 0.0, 0.7]])
    return 0.5 * base @ mix + mode * torch.tensor([1.5, -1.0, 0.5, 1.0]) - (1 - mode)


class Maker(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.z = z
        self.body = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, n):
        return self.body(torch.randn(n, self.z))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def slope_penalty(critic, real, fake):
    u = torch.rand(len(real), 1)
    mid = (u * real + (1 - u) * fake).requires_grad_(True)
    grad = torch.autograd.grad(critic(mid).sum(), mid, create_graph=True)[0]
    return ((grad.norm(dim=1) - 1) ** 2).mean()
