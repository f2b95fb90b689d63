import torch
from torch import nn


class Wrapped(torch.optim.Optimizer):
    def __init__(self, params, base, **options):
        super().__init__(params, options)
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def step(self, closure=None):
        return self.base.step(closure)  # FAULT C101


net = nn.Linear(8, 2)
opt = Wrapped(net.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(100):
    x = torch.randn(32, 8)
    y = (x.sum(1) > 0).long()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
