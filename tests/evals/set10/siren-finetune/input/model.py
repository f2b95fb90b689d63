import torch.nn as nn


class Backbone(nn.Module):
    """spectrum (80 bins) -> 64 features; pre-trained on eight city sounds"""

    def __init__(self):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv1d(i, o, 5, stride=2, padding=2), nn.BatchNorm1d(o), nn.ReLU())

        self.low = block(1, 16)
        self.mid = block(16, 32)
        self.high = block(32, 64)
        self.pool = nn.AdaptiveMaxPool1d(1)

    def forward(self, x):
        h = self.high(self.mid(self.low(x.unsqueeze(1))))
        return self.pool(h).flatten(1)


class Tagger(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.backbone(x))
