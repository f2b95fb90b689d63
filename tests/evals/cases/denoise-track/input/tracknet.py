import torch
from torch import nn


class TrackNet(nn.Module):
    """1-d denoiser for GPS tracks"""

    def __init__(self, ch=24, depth=5):
        super().__init__()
        self.head = nn.Conv1d(2, ch, 5, padding=2)
        self.body = nn.ModuleList([nn.Conv1d(ch, ch, 5, padding=2) for _ in range(depth)])
        self.tail = nn.Conv1d(ch, 2, 5, padding=2)

    def forward(self, x):
        h = torch.relu(self.head(x))
        for conv in self.body:
            h = h + torch.relu(conv(h))
        return x - self.tail(h)
