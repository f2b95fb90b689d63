import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import pandas as pd
import numpy as np


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
        self.score = nn.Linear(16, 1)

    def forward(self, x):
        h = self.enc(x)
        return h, self.score(h)


def info_nce(a, b, t=0.1):
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    sim = a @ b.T / t
    labels = torch.arange(len(a))
    fwd = F.cross_entropy(sim, labels)
    back = F.nll_loss(F.log_softmax(sim, dim=0).T, labels)
    acc = (sim.softmax(dim=0).argmax(dim=0) == labels).float().mean()
    return fwd + back, acc


def pair_distances(x):
    sq = x.pow(2).sum(1)
    return sq[:, None] + sq - 2 * x @ x.T


def ranking(score, y):
    s = score.squeeze(1)
    diff = s[:, None] - s[None, :]
    want = (y[:, None] > y[None, :]).float()
    return F.binary_cross_entropy_with_logits(diff, want)


def listwise(score, y):
    return -(F.softmax(y, dim=0) * F.log_softmax(score.squeeze(-1), dim=0)).sum()


def same_class(y):
    return (y.unsqueeze(1) == y).float()


def barlow(a, b):
    za = (a - a.mean(0)) / (a.std(0) + 1e-6)
    zb = (b - b.mean(0)) / (b.std(0) + 1e-6)
    return za.T @ zb / len(za)


def cov_unit(z):
    z = F.normalize(z, dim=0)
    return z.T @ z


def main():
    df = pd.read_csv("a.csv")
    x = torch.tensor(df.drop(columns=["y"]).to_numpy(), dtype=torch.float32)
    y = torch.tensor(df["y"].to_numpy(), dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for xb, yb in DataLoader(TensorDataset(x, y), 32, shuffle=True):
        h, s = net(xb)
        h2, _ = net(xb + 0.1 * torch.randn_like(xb))
        nce, acc = info_nce(h, h2)
        weights = torch.softmax(-yb, dim=0)
        reg = (weights * (s.squeeze(1) - yb) ** 2).sum()
        mse = F.mse_loss(s[:, 0], yb) + F.mse_loss(s, yb.unsqueeze(1)) + F.l1_loss(s.flatten(), yb)
        d = pair_distances(h)
        kernel = torch.exp(-(yb[:, None] - yb) ** 2)
        loss = nce + reg + mse + ranking(s, yb) + listwise(s, yb) + (d * same_class(yb)).mean() + barlow(h, h2).pow(2).mean() + cov_unit(h).mean() + (kernel * d).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
