import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters())
        self.model.train()

    def epoch(self):
        for x, y in batches():
            self.opt.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def check(self):
        self.model.eval()  # FAULT C104
        return self.model(torch.randn(4, 6)).argmax(1)

    def run(self):
        for _ in range(10):
            self.epoch()
            self.check()


Trainer(network()).run()
