import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Slot(nn.Module):
    def __init__(self, dim, n):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(n, dim))
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x):
        b, t, d = x.shape
        q = self.q(self.slots).expand(b, -1, -1)
        k, v = self.k(x), self.v(x)
        attn = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d), dim=1) + 1e-8
        attn = attn / attn.sum(-1, keepdim=True)
        return attn @ v


class Linear(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x):
        q = self.q(x).softmax(dim=-1)
        k = self.k(x).softmax(dim=1)
        ctx = k.transpose(1, 2) @ self.v(x)
        return q @ ctx


class Vlad(nn.Module):
    def __init__(self, dim, k):
        super().__init__()
        self.conv = nn.Conv1d(dim, k, 1)

    def forward(self, x):
        a = F.softmax(self.conv(x), dim=1)
        return torch.bmm(a, x.transpose(1, 2))


class KeyFirst(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x):
        s = self.k(x) @ self.q(x).transpose(1, 2)
        w = s.softmax(dim=1)
        return w.transpose(1, 2) @ self.v(x)


class Series(Dataset):
    def __init__(self, s):
        self.s = s

    def __len__(self):
        return len(self.s) - 20

    def __getitem__(self, i):
        return self.s[i:i + 20], self.s[i + 20]


class Model(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.inp = nn.Linear(f, 32)
        self.a = nn.MultiheadAttention(32, 4)
        self.b = nn.MultiheadAttention(32, 4, batch_first=True)
        self.g = nn.GRU(32, 32)
        self.slot, self.lin, self.kf = Slot(32, 4), Linear(32), KeyFirst(32)
        self.att = nn.Linear(32, 1)
        self.out = nn.Linear(32, f)

    def forward(self, x):
        h = self.inp(x)
        h = self.b(h, h, h)[0]
        t = h.transpose(0, 1)
        t, _ = self.a(t, t, t)
        t, _ = self.g(t)
        h = t.transpose(0, 1) + self.lin(h) + self.kf(h)
        w = torch.softmax(self.att(h), dim=1)
        pooled = (w * h).sum(1) + self.slot(h).mean(1)
        return self.out(pooled)


def main():
    s = torch.load("s.pt")
    m = Model(s.shape[1])
    opt = torch.optim.Adam(m.parameters())
    for x, y in DataLoader(Series(s), 64, shuffle=True):
        loss = F.mse_loss(m(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
