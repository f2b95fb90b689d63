import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def fit(net, accum):
    opt = torch.optim.AdamW(net.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for i, (x, y) in enumerate(batches()):
        scaler.scale(nn.functional.cross_entropy(net(x), y) / accum).backward()
        if (i + 1) % accum == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # FAULT C106
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()


fit(nn.Linear(6, 3).cuda(), 4)
