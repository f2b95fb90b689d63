"""Memory cut by the module."""
import torch
from torch import nn


class Mem(nn.Module):

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(16, 8)

    def forward(self, x, memory):
        out = self.f(torch.cat([x, memory], -1))
        return (out, out.detach())


def train(loader):
    m = Mem()
    opt = torch.optim.Adam(m.parameters())
    memory = torch.zeros(1, 8)
    for x, y in loader:
        out, memory = m(x, memory)
        loss = nn.functional.mse_loss(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
