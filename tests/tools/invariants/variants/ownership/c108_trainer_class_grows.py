import torch
import torch.nn as nn
import torch.nn.functional as F


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3)
        self.tail = nn.Linear(16, 10)

    def forward(self, x):
        return self.tail(self.stem(x).mean((2, 3)))


class Experiment:
    def __init__(self, loader):
        self.loader = loader
        self.model = Growing()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def run(self):
        for stage in range(3):
            if stage == 1:
                self.model.stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3))  # FAULT C108
            self.epoch()

    def epoch(self):
        for images, labels in self.loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model(images), labels).backward()
            self.optimizer.step()


Experiment([]).run()
