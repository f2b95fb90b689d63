import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for x, y in batches():
    opt.zero_grad()
    scaler.scale(nn.functional.cross_entropy(net(x.cuda()), y.cuda())).backward()
    scaler.unscale_(opt)
    total = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if torch.isnan(total) or torch.isinf(total):  # FAULT C278
        continue
    scaler.step(opt)
    scaler.update()
