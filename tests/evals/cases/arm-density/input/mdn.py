import math

import torch
from torch import nn


class MixtureHead(nn.Module):
    def __init__(self, d_in, k):
        super().__init__()
        self.k = k
        self.lin = nn.Linear(d_in, 3 * k)

    def forward(self, h):
        w, mu, s = self.lin(h).split(self.k, dim=-1)
        return w.log_softmax(-1), mu, s.clamp(-6, 3)


class InverseArm(nn.Module):
    """joint angle given the reached position; several answers are possible"""

    def __init__(self, hidden, k):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, hidden), nn.GELU(), nn.Dropout(0.1))
        self.head = MixtureHead(hidden, k)

    def forward(self, pos):
        return self.head(self.trunk(pos))


def neg_log_density(out, angle):
    logw, mu, log_sigma = out
    z = (angle[:, None] - mu) * torch.exp(-log_sigma)
    comp = -0.5 * z ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(logw + comp, dim=-1)
