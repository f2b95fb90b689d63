import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))

    def forward(self, z):
        return self.body(z)

    @torch.no_grad()
    def sample(self, n):
        self.eval()  # FAULT C104
        return self(torch.randn(n, 4))


g = Generator()
opt = torch.optim.Adam(g.parameters())
for x, _ in batches():
    opt.zero_grad()
    loss = (g(torch.randn(8, 4)) - x).square().mean()
    loss.backward()
    opt.step()
    g.sample(4)
