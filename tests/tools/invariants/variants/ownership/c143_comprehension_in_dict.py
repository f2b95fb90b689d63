import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.gate = nn.Linear(12, 4)
        self.experts = {name: nn.Linear(12, 3) for name in names}  # FAULT C143

    def forward(self, x, name):
        return self.experts[name](x) * self.gate(x).mean()


experts = Experts(["a", "b"])
opt = torch.optim.Adam(experts.parameters(), lr=1e-3)
for x, y, name in []:
    opt.zero_grad()
    nn.functional.cross_entropy(experts(x, name), y).backward()
    opt.step()
