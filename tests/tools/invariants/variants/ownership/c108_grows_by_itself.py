import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.steps = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.readout = nn.Linear(width, 2)

    def deepen(self):
        self.steps.append(nn.Linear(self.width, self.width))  # FAULT C108

    def forward(self, x):
        return self.readout(self.steps(x))


def learn(batches, rounds=4):
    net = Stack(12)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for turn in range(rounds):
        if turn > 0:
            net.deepen()
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()


learn([])
