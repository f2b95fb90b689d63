import torch
from torch import nn
from torch.nn import functional as F


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def network():
    return nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, x):
        return self.layers(x)


class Job:
    def __init__(self):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())

    def update(self, x, y):
        self.opt.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        self.opt.step()

    @torch.inference_mode()
    def predict(self, x):
        return self.net(x).argmax(1)  # FAULT C165

    def run(self):
        for _ in range(4):
            for x, y in batches():
                self.update(x, y)
            hits = [(self.predict(x) == y).float().mean() for x, y in batches(5)]
            print(sum(hits) / len(hits))


Job().run()
