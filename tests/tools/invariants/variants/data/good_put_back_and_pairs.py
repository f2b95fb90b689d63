"""Rows that are sorted for a store and put back, sorted together, or taken twice to be mixed."""

import h5py
import numpy as np
import torch
from torch import nn


class Store:
    def __init__(self, path):
        self.file = h5py.File(path, "r")
        self.x, self.y = self.file["x"], self.file["y"][:]

    def put_back(self, chosen):
        order = np.argsort(chosen)
        found = self.x[chosen[order]]
        back = np.argsort(order)
        return found[back], self.y[chosen]

    def by_unique(self, chosen):
        rows, back = np.unique(chosen, return_inverse=True)
        return self.x[rows][back], self.y[chosen]

    def together(self, chosen):
        chosen = np.sort(chosen)
        return self.x[chosen], self.y[chosen]

    def each_sorted(self, chosen):
        return self.x[np.sort(chosen)], self.y[np.sort(chosen)]


def mixed(x, y, rows, share):
    other = np.flip(rows)
    return share * x[rows] + (1 - share) * x[other], y[rows], y[other], share


def pairs(x, y, rows, rng):
    return x[rows], y[rows], x[rng.permutation(rows)], y[rng.permutation(rows)]


def train(store, net, optimizer, rng):
    x, y = store.together(rng.choice(100, 8, replace=False))
    loss = nn.functional.mse_loss(net(torch.from_numpy(x))[:, 0], torch.from_numpy(y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
