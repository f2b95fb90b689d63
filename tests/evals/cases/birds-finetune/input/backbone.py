import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, out=48):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU())
        self.stage = nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, out, 3, 1, 1), nn.ReLU())

    def forward(self, x):
        return self.stage(self.stem(x)).flatten(2).mean(-1)


class BirdClassifier(nn.Module):
    def __init__(self, n_species, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(48, n_species)

    def set_backbone_trainable(self, flag):
        for p in self.backbone.parameters():
            p.requires_grad_(flag)

    def forward(self, x):
        return self.head(self.backbone(x))
