import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(20, width)
        self.outer = nn.Linear(width, 2)

    def forward(self, x):
        return self.outer(self.inner(x).tanh())


model = Scorer(32)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
if True:
    model = Scorer(128)  # FAULT C108
    model.train()
while True:
    x, y = torch.randn(8, 20), torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < 0.01:
        break
