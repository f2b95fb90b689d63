import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


class Engine:
    def __init__(self):
        self.net = nn.Linear(6, 3)
        self.opts = [torch.optim.AdamW(self.net.parameters(), lr=1e-3)]
        self.criterion = nn.CrossEntropyLoss()

    def forward_backward(self, batch):
        x, y = batch
        self.criterion(self.net(x), y).backward()

    def apply(self):
        for o in self.opts:
            o.step()  # FAULT C101

    def fit(self, epochs):
        for _ in range(epochs):
            for batch in batches():
                self.forward_backward(batch)
                self.apply()


Engine().fit(2)
