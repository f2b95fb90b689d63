import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + self.mix(self.norm(x))


class Tower(nn.Module):
    def __init__(self, depth=6, width=48):
        super().__init__()
        self.blocks = []  # FAULT C143
        for _ in range(depth):
            self.blocks.append(Block(width))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.last(x)


tower = Tower()
opt = torch.optim.AdamW(tower.parameters())
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(tower(x), y).backward()
    opt.step()
