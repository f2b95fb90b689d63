import torch
from torch import nn


class CallEncoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.GELU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.GELU(), nn.Flatten(), nn.Linear(32 * 8 * 10, dim))

    def forward(self, x):
        return self.net(x)
