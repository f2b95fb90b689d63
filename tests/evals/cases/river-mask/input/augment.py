import random

import torch


class RandomFlipRotate:
    """Dihedral augmentation for square tiles."""

    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, t):
        if random.random() < self.p:
            t = torch.flip(t, dims=(-1,))
        if random.random() < self.p:
            t = torch.flip(t, dims=(-2,))
        if random.random() < self.p:
            t = torch.rot90(t, 1, dims=(-2, -1))
        return t


class Brightness:
    def __init__(self, amount=0.15):
        self.amount = amount

    def __call__(self, t):
        return t * (1 + random.uniform(-self.amount, self.amount))
