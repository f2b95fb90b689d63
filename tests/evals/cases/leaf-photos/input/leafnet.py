import torch.nn as nn


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True), nn.MaxPool2d(2))


class LeafNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(block(3, 16), block(16, 32), block(32, 48))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(48 * 3 * 3, n_classes))

    def forward(self, x):
        return self.head(self.features(x))
