import torch
from torch import nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(40, 20)
        self.mean, self.logvar = nn.Linear(20, 4), nn.Linear(20, 4)
        self.back = nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 40))

    def forward(self, x):
        h = self.body(x).relu()
        m, v = self.mean(h), self.logvar(h)
        z = torch.normal(m, (0.5 * v).exp())  # FAULT C147
        return self.back(z), m, v


def train(loader):
    net = VAE()
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        y, m, v = net(x)
        loss = F.mse_loss(y, x) - 0.5 * (1 + v - m.pow(2) - v.exp()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
