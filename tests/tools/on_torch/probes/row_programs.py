"""Small trainings whose rows are known one by one."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES, WIDTH = 4, 16


def rows(n=1000, offset=0.0):
    """Four classes around centres of their own."""
    random = torch.Generator().manual_seed(1)
    centres = 1.3 * torch.randn(CLASSES, WIDTH, generator=random)
    y = torch.randint(0, CLASSES, (n,), generator=random)
    return centres[y] + torch.randn(n, WIDTH, generator=random) + offset, y


def net():
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def loader(x, y, shuffle=True, **options):
    return DataLoader(TensorDataset(x, y), 32, shuffle=shuffle, **options)


def fit(model, train, held_out=None, epochs=3, loss_of=F.cross_entropy, rate=1e-2, given=lambda x: x):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        model.train()
        for x, y in train:
            loss = loss_of(model(given(x)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if held_out is not None:
            model.eval()
            with torch.no_grad():
                for x, _ in held_out:
                    model(x)


def split(n=1000):
    x, y = rows(n)
    return x[:800], y[:800], x[800:], y[800:]


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, input_ids):
        return self.head(self.words(input_ids).mean(1))


class Next(nn.Module):
    """Predicts a token from the one at its place and those before."""

    def __init__(self):
        super().__init__()
        self.words, self.inner, self.head = nn.Embedding(30, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 30)

    def forward(self, input_ids):
        return self.head(self.inner(self.words(input_ids))[0])
