import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.steps = []
        for i in range(depth):
            layer = nn.Linear(8, 8)
            self.add_module(f"step{i}", layer)
            self.steps.append(layer)
        self.end = nn.Linear(8, 2)

    def forward(self, x):
        for step in self.steps:
            x = step(x).relu()
        return self.end(x)


stack = Stack()
opt = torch.optim.Adam(stack.parameters(), lr=1e-3)
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(stack(x), y).backward()
    opt.step()
