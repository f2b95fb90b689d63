import torch
import torch.nn as nn


class SpottingNet(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 6 * 8, 96), nn.ReLU(),
        )
        self.head = nn.Linear(96, n_words)

    def forward(self, x):
        return self.head(self.features(x))

    def add_words(self, extra):
        old = self.head
        new = nn.Linear(old.in_features, old.out_features + extra)
        with torch.no_grad():
            new.weight[: old.out_features] = old.weight
            new.bias[: old.out_features] = old.bias
        self.head = new

    def hold_features(self):
        for p in self.features.parameters():
            p.requires_grad_(False)
