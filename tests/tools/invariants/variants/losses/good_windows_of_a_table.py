"""Windows of a table."""
import numpy as np, torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


class S(Dataset):

    def __init__(self, v, w):
        self.v, self.w = (v, w)

    def __len__(self):
        return len(self.v) - self.w

    def __getitem__(self, i):
        return (self.v[i:i + self.w], self.v[i + self.w])


class M(nn.Module):

    def __init__(self, f):
        super().__init__()
        self.rnn, self.out = (nn.LSTM(f, 32, batch_first=True), nn.Linear(32, f))

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


def train(values, w):
    m = M(values.shape[1])
    o = torch.optim.Adam(m.parameters())
    for x, y in DataLoader(S(values.astype(np.float32), w), 32, shuffle=True):
        o.zero_grad()
        nn.functional.l1_loss(m(x), y).backward()
        o.step()
