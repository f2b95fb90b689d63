from torch import nn


def block(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class Encoder(nn.Module):
    """Small convolutional encoder; returns one vector per image."""

    def __init__(self, width=16, dim=48):
        super().__init__()
        self.stem = block(3, width, 1)
        self.stage1 = block(width, width, 1)
        self.stage2 = block(width, 2 * width, 2)
        self.stage3 = block(2 * width, dim, 2)
        self.dim = dim

    def forward(self, x):
        h = self.stage3(self.stage2(self.stage1(self.stem(x))))
        return h.mean((2, 3))
