"""Logarithms of what a linear layer gives, which is as often negative as positive."""
import torch
from torch import nn
class Rate(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.body(x))
def fit(rows):
    net = Rate(); steps = torch.optim.Adam(net.parameters())
    for epoch in range(5):
        for x, y in rows:
            out = net(x)
            loss = (out.log() - y.log1p()).square().mean()  # FAULT C107
            scaled = torch.log(out[:, 0] * 2).mean() if epoch else 0.0  # FAULT C107
            steps.zero_grad(); (loss + scaled).backward(); steps.step()
