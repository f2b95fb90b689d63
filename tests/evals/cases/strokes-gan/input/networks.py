from torch import nn


class Painter(nn.Module):
    def __init__(self, z=16, side=12):
        super().__init__()
        self.side = side
        self.body = nn.Sequential(nn.Linear(z, 96), nn.LeakyReLU(0.2), nn.Linear(96, 128), nn.LeakyReLU(0.2), nn.Linear(128, side * side), nn.Tanh())

    def forward(self, z):
        return self.body(z).view(-1, 1, self.side, self.side)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 12, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(12, 24, 3, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(24 * 9, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)
