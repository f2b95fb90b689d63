import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, 9, stride=stride, padding=4, bias=False)
        self.bn = nn.BatchNorm1d(c_out)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Encoder(nn.Module):
    """Vibration window (batch, 256) -> feature vector (batch, dim)."""

    def __init__(self, widths=(16, 32, 48)):
        super().__init__()
        sizes = (1, *widths)
        self.blocks = nn.Sequential(*[Block(a, b, 2) for a, b in zip(sizes, sizes[1:])])
        self.dim = 2 * widths[-1]

    def forward(self, x):
        h = self.blocks(x[:, None])
        return torch.cat([h.mean(-1), h.amax(-1)], 1)
