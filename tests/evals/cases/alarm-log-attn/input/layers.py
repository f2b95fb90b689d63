import math
import torch
import torch.nn as nn


class DistanceBias(nn.Module):
    """Learned bias per head as a function of the (log bucketed) distance of two events."""

    def __init__(self, heads, buckets=16):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(heads, buckets))
        self.buckets = buckets
        self._grids = {}

    def bucket(self, n):
        d = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        b = (d.abs().float() + 1).log2().mul(2).long().clamp(max=self.buckets - 1)
        return b

    def forward(self, n):
        if n not in self._grids:
            self._grids[n] = self.table[:, self.bucket(n)]
        return self._grids[n]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.dim = heads, dim
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.bias = DistanceBias(heads)

    def forward(self, x, state):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.bias(n)
        y = (att.softmax(-1) @ v).transpose(1, 2).reshape(b, n, -1)
        x = x + self.out(y) + state[:, None]
        return x + self.mlp(self.n2(x))
