import torch
from torch import nn
def run(data):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    params = net.parameters()
    opt = torch.optim.Adam(params, lr=1e-3)
    for x, y in data:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)  # FAULT C135
        opt.step()
