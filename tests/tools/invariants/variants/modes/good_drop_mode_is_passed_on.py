import torch
from torch import nn
from torch.nn import functional as F


def residual(x, p, training):
    return x + F.dropout(x, p=p, training=training)


class Net(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.inner, self.p = nn.Linear(4, 4), p

    def forward(self, x):
        return residual(self.inner(x), self.p, self.training)
