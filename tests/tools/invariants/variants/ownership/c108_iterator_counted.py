import torch
from torch import nn
def run(data):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    params = filter(lambda p: p.requires_grad, net.parameters())
    n = 0
    for p in params:
        n += p.numel()
    opt = torch.optim.Adam(params, lr=1e-3)  # FAULT C108
    for x, y in data:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
