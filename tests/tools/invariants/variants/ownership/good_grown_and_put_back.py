"""Healthy: parts after the optimizer that are given to it, or put back."""
import copy
import torch
from torch import nn

class Grow(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d, d)])
    def grow(self):
        new = nn.Linear(8, 8)
        self.layers.append(new)
        return new
    def forward(self, x):
        for l in self.layers:
            x = torch.relu(l(x))
        return x

def train(data):
    net = Grow(8)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(10):
        if epoch == 5:
            new = net.grow()
            opt.add_param_group({"params": new.parameters()})
        for x, y in data:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()

class Trainer:
    def __init__(self):
        self.model = Grow(8)
        self.ema = copy.deepcopy(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters())
    def evaluate(self, data):
        backup = self.model
        self.model = self.ema
        self.model.eval()
        with torch.no_grad():
            out = [self.model(x) for x, y in data]
        self.model = backup
        self.model.train()
        return out
    def fit(self, data):
        for epoch in range(3):
            self.model.train()
            for x, y in data:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
                with torch.no_grad():
                    for p, q in zip(self.ema.parameters(), self.model.parameters()):
                        p.lerp_(q, 0.01)
            self.evaluate(data)

class Base:
    def __init__(self, d):
        self.net = nn.Linear(d, d)
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
    def step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
class Deep(Base):
    def __init__(self, d):
        super().__init__(d)
        self.net = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
def run(data):
    agent = Deep(4)
    for x, y in data:
        agent.step(x, y)
