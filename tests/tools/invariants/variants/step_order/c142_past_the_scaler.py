"""A step of the optimizer itself behind unscale_."""
import torch
from torch import nn


def fit(net, batches, rate=1e-3):
    opt = torch.optim.AdamW(net.parameters(), lr=rate)
    amp = torch.cuda.amp.GradScaler()
    for a, b in batches:
        with torch.cuda.amp.autocast():
            cost = (net(a) - b).pow(2).mean()
        opt.zero_grad()
        amp.scale(cost).backward()
        amp.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()  # FAULT C142
        amp.update()
