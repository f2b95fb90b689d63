import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(8, 8)
        self.back = nn.Linear(8, 2)

    def forward(self, x):
        with torch.no_grad():
            h = self.front(x)  # FAULT C147
        return self.back(h)


def grouped(batches):
    net = Two()
    opt = torch.optim.Adam([{"params": net.front.parameters(), "lr": 1e-4}, {"params": net.back.parameters()}])
    for x, y in batches:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def weighed(batches, net):
    net = nn.Linear(8, 2)
    scale = nn.Parameter(torch.zeros(2))
    opt, weights = torch.optim.Adam(net.parameters()), torch.optim.Adam([scale])
    for x, y, z in batches:
        losses = [nn.functional.mse_loss(net(x)[:, 0], y), nn.functional.l1_loss(net(x)[:, 1], z)]
        both = torch.as_tensor(losses)  # FAULT C147
        total = (both * torch.exp(-scale) + scale).sum()
        opt.zero_grad()
        weights.zero_grad()
        total.backward()
        opt.step()
        weights.step()
