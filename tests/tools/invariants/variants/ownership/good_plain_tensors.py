"""Healthy: plain tensors and objects in modules."""
import math
import torch
from torch import nn
import torch.nn.functional as F

class Schedule:
    def __init__(self, t):
        self.betas = torch.linspace(1e-4, 0.02, t)

class Pos(nn.Module):
    def __init__(self, d, n=500):
        super().__init__()
        self.schedule = Schedule(10)
        self.scale = nn.Parameter(torch.ones(d))
        self.half = self.scale.shape[0] // 2
        self.register_buffer("ones", torch.ones(d))
        self.norm = torch.zeros(d)
        self.embed = nn.Embedding(10, d)
        self.fixed = torch.randn(n, d)
        self.mask = torch.ones(d)
        pe = torch.zeros(n, d)
        pos = torch.arange(n).unsqueeze(1)
        pe[:, 0::2] = torch.sin(pos * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d)))
        self.pe = pe
    def prune(self, keep):
        self.mask = keep
    def forward(self, x):
        x = self.embed(x) + self.pe[: x.shape[1]].to(x.device)
        return x * self.scale * self.mask

class Attack(nn.Module):
    def __init__(self, net, shape):
        super().__init__()
        self.net = net
        self.delta = torch.zeros(shape, requires_grad=True)
    def forward(self, x):
        return self.net(x + self.delta)

def attack(net, x, y):
    a = Attack(net, x.shape)
    opt = torch.optim.SGD([a.delta], 0.1)
    for _ in range(10):
        opt.zero_grad()
        F.mse_loss(a(x), y).backward()
        opt.step()


class Blur(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = None
    def forward(self, x):
        k = nn.Conv2d(3, 3, 3, bias=False)
        k.weight.data = torch.ones(3, 3, 3, 3) / 27
        k.weight.requires_grad = False
        if self.lin is None:
            self.lin = nn.Linear(x.shape[-1], 3)
        return self.lin(k(x))
