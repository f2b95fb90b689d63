import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        left, right = nn.Conv1d(3, 3, 3), nn.Conv1d(3, 3, 5)
        self.branches = (left, right)  # FAULT C143
        self.out = nn.Linear(3, 3)

    def forward(self, x):
        return self.out(sum(branch(x).mean(-1) for branch in self.branches))


branches = Branches()
opt = torch.optim.SGD(branches.parameters(), lr=0.1)
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(branches(x), y).backward()
    opt.step()
