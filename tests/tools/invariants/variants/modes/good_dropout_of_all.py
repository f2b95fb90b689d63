"""A layer that is skipped where its rate is 1 asks for it before it drops."""
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
