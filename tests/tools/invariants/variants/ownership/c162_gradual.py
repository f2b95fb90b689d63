import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = nn.Linear(30, 30)
        self.upper = nn.Linear(30, 4)

    def forward(self, x):
        return self.upper(self.lower(x).relu())


class Finetuner:
    def __init__(self, batches):
        self.batches = batches
        self.reader = Reader()
        self.reader.lower.requires_grad_(False)
        chosen = [p for p in self.reader.parameters() if p.requires_grad]
        self.opt = torch.optim.Adam(chosen, lr=1e-3)

    def train(self):
        for epoch in range(10):
            if epoch == 3:
                self.reader.lower.requires_grad_(True)  # FAULT C162
            for x, y in self.batches:
                loss = nn.functional.cross_entropy(self.reader(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()


Finetuner([]).train()
