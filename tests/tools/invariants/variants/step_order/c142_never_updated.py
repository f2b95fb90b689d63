import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def train(net, loader):
    opt = torch.optim.AdamW(net.parameters())
    scaler = torch.cuda.amp.GradScaler(init_scale=1024)
    for x, y in loader:
        opt.zero_grad()
        scaler.scale(nn.functional.cross_entropy(net(x), y)).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)  # FAULT C142


train(nn.Linear(6, 3).cuda(), batches())
