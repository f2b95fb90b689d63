import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


net = nn.Linear(6, 3).cuda()
opt = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cuda")
for x, y in batches():
    opt.zero_grad(set_to_none=True)
    scaler.scale(nn.functional.cross_entropy(net(x.cuda()), y.cuda())).backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)  # FAULT C106
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
