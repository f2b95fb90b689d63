import torch
import torch.nn as nn


class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.shared = nn.Linear(16, 16)
        heads = {}
        for task in ("age", "weight"):
            heads[task] = nn.Linear(16, 1)
        self.heads = heads  # FAULT C143

    def forward(self, x, task):
        return self.heads[task](self.shared(x).relu())


model = MultiTask(2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y, task in []:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x, task), y).backward()
    optimizer.step()
