import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


g, d = nn.Linear(4, 6).cuda(), nn.Linear(6, 1).cuda()
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
scaler = torch.amp.GradScaler("cuda")
bce = nn.BCEWithLogitsLoss()
for x, _ in batches():
    z = torch.randn(len(x), 4).cuda()
    od.zero_grad()
    real, fake = d(x.cuda()), d(g(z).detach())
    scaler.scale(bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))).backward()
    scaler.unscale_(od)
    nn.utils.clip_grad_norm_(d.parameters(), 1.0)
    scaler.step(od)
    og.zero_grad()
    out = d(g(z))
    scaler.scale(bce(out, torch.ones_like(out))).backward()
    scaler.step(og)
    scaler.update()
