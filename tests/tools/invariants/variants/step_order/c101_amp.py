import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


model = nn.Linear(6, 3).cuda()
opt = torch.optim.AdamW(model.parameters())
grad_scaler = torch.amp.GradScaler("cuda")
for x, y in batches():
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    grad_scaler.scale(loss).backward()
    grad_scaler.step(opt)  # FAULT C101
    grad_scaler.update()
