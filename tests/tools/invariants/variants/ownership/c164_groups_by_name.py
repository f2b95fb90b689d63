import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.neck = nn.Conv2d(8, 8, 1)
        self.box = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        return self.box(self.neck(x))


detector = Detector()
slow = dict(params=detector.parameters(), lr=1e-5)
fast = dict(params=detector.box.parameters(), lr=1e-3)
optimizer = torch.optim.AdamW([slow, fast])  # FAULT C164
for x, y in []:
    optimizer.zero_grad()
    nn.functional.mse_loss(detector(x), y).backward()
    optimizer.step()
