import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.inner, self.p = nn.Linear(4, 4), p

    def forward(self, x):
        x = self.inner(x)
        if not self.training:
            return x
        return F.dropout(x, self.p)
