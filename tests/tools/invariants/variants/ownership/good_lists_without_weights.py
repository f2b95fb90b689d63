"""A list of pooling modules has nothing to train; parameters of a list are registered one by one."""
import torch
from torch import nn


class Smooth(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.pool = nn.AvgPool1d(width, stride=1)

    def forward(self, x):
        return self.pool(nn.functional.pad(x, (self.width - 1, 0), mode="replicate"))


class Trends(nn.Module):
    def __init__(self, widths=(3, 5, 9)):
        super().__init__()
        self.smooths = [Smooth(width) for width in widths]
        self.scales = [nn.Parameter(torch.ones(1)) for _ in widths]
        for i, scale in enumerate(self.scales):
            self.register_parameter(f"scale_{i}", scale)
        self.weigh = nn.Linear(1, len(widths))

    def forward(self, x):
        trends = torch.stack([scale * smooth(x) for scale, smooth in zip(self.scales, self.smooths)], -1)
        return (trends * self.weigh(x[..., None]).softmax(-1)).sum(-1)


def train(loader):
    model = Trends()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x in loader:
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
