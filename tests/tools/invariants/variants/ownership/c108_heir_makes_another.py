import torch
from torch import nn


class Learner:
    def __init__(self, width):
        self.net = nn.Linear(width, 3)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def update(self, x, y):
        error = nn.functional.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        error.backward()
        self.optimizer.step()


class DeepLearner(Learner):
    def __init__(self, width):
        super().__init__(width)
        self.net = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 3))  # FAULT C108


def main(batches):
    learner = DeepLearner(8)
    for x, y in batches:
        learner.update(x, y)


main([])
