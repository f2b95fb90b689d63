import torch
from torch import nn


class Trainer:
    def __init__(self, width):
        self.model = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.criterion = nn.MSELoss()
        self.epoch_loss, self.by_part = 0.0, {"fit": 0.0}

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.epoch_loss += loss  # FAULT C103
        self.by_part["fit"] += loss  # FAULT C103
        return loss

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.epoch_loss = 0.0
            for x, y in loader:
                self.train_step(x, y)
            print(float(self.epoch_loss))


if __name__ == "__main__":
    Trainer(8).fit([(torch.randn(4, 8), torch.randn(4, 1))] * 10, 3)
