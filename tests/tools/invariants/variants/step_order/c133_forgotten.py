import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class Run:
    def __init__(self):
        self.net = nn.Linear(6, 3)
        self.opt = torch.optim.Adam(self.net.parameters())
        self.plan = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, 100)

    def fit(self):
        for x, y in batches():
            self.opt.zero_grad(set_to_none=True)  # FAULT C133
            nn.functional.cross_entropy(self.net(x), y).backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.plan.step()


Run().fit()
