import torch
from torch import nn


def block(cin, cout, stride):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Backbone(nn.Module):
    out_dim = 32

    def __init__(self):
        super().__init__()
        self.stem = block(3, 12, 2)
        self.layer1 = block(12, 24, 2)
        self.layer2 = block(24, 32, 1)

    def forward(self, x):
        return self.layer2(self.layer1(self.stem(x))).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, classes, backbone=None):
        super().__init__()
        self.backbone = backbone or Backbone()
        self.head = nn.Linear(Backbone.out_dim, classes)

    def forward(self, x):
        return self.head(self.backbone(x))

    def freeze_backbone(self):
        for p in self.backbone.parameters():
            p.requires_grad_(False)
        self.backbone.eval()


def load_backbone(path):
    net = Backbone()
    net.load_state_dict(torch.load(path, weights_only=True))
    return net
