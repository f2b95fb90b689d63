import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def bounded(parameters, limit):
    return nn.utils.clip_grad_norm_(parameters, limit)  # FAULT C106


net = nn.Linear(6, 3).cuda()
opt = torch.optim.AdamW(net.parameters())
scaler = torch.cuda.amp.GradScaler()
for x, y in batches():
    opt.zero_grad()
    with torch.cuda.amp.autocast():
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
    scaled = scaler.scale(loss)
    scaled.backward()
    bounded(net.parameters(), 0.5)
    scaler.step(opt)
    scaler.update()
