import torch
import torch.nn as nn


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.readout = nn.Linear(8, 12)

    def forward(self, x):
        return self.readout(self.body(x))

    def freeze(self):
        for weight in self.parameters():
            weight.requires_grad_(False)  # FAULT C153
        self.body[1].requires_grad_(True)


probe = Probe()
probe.freeze()
optimizer = torch.optim.SGD(probe.parameters(), lr=0.05)
for x, y in []:
    optimizer.zero_grad()
    nn.functional.cross_entropy(probe(x), y).backward()
    optimizer.step()
