import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def _regularised(self, x):
        return torch.nn.functional.alpha_dropout(x, p=0.1)  # FAULT C144

    def forward(self, x):
        return self.b(self._regularised(F.selu(self.a(x))))
