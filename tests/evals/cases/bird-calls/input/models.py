import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv1d(c_in, c_out, 5, stride=2, padding=2)
        self.norm = nn.GroupNorm(4, c_out)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class CallNet(nn.Module):
    """1-D conv net on mel-energy envelopes: trunk + linear classifier."""

    def __init__(self, n_classes, width=16):
        super().__init__()
        self.trunk = nn.Sequential(Block(1, width), Block(width, 2 * width), Block(2 * width, 4 * width),
                                   nn.AdaptiveAvgPool1d(4), nn.Flatten())
        self.feat_dim = 16 * width
        self.classifier = nn.Linear(self.feat_dim, n_classes)

    def forward(self, x):
        return self.classifier(self.trunk(x))

    def reset_classifier(self, n_classes):
        self.classifier = nn.Linear(self.feat_dim, n_classes)
        return self

    def freeze_trunk(self):
        for p in self.trunk.parameters():
            p.requires_grad_(False)
        return self


def trainable(model):
    return [p for p in model.parameters() if p.requires_grad]
