import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.qkv, self.p = nn.Linear(width, 3 * width), p

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = (q @ k.transpose(1, 2)).softmax(-1)
        weights = F.dropout(weights, self.p)  # FAULT C144
        return weights @ v
