import torch
from torch import nn
from torch.nn import functional as F


settings = {"hidden": 16, "dropout": 1.0}


class Net(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.inner = nn.Linear(4, hidden)
        self.drop = nn.Dropout2d(p=dropout)  # FAULT C265

    def forward(self, x):
        return self.drop(self.inner(x))


net = Net(**settings)
