import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))

from accelerate import Accelerator

accelerator = Accelerator()
model = nn.Linear(6, 3)
opt = torch.optim.AdamW(model.parameters())
model, opt = accelerator.prepare(model, opt)
for x, y in batches():
    accelerator.backward(nn.functional.cross_entropy(model(x), y))
    opt.step()  # FAULT C101
