"""A layer that is skipped where its rate is 1 asks for it before it drops; a rate of 0 drops nothing in any mode."""
import math

import torch.nn.functional as F
from torch import nn


class Skipped(nn.Module):
    def __init__(self, body, rate=1.0):
        super().__init__()
        self.body, self.rate = body, rate

    def forward(self, x):
        if not self.training:
            return self.body(x)
        if math.isclose(self.rate, 1.0):
            return x
        return x + F.dropout(self.body(x), p=self.rate)


class Decoder(nn.Module):
    def __init__(self, size, rate=0.0):
        super().__init__()
        self.out, self.rate = nn.Linear(size, size), rate

    def forward(self, x):
        return self.out(F.dropout(x, p=self.rate))


decoder = Decoder(8)
