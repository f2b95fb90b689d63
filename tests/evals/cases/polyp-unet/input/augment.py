import torch


class Chain:
    def __init__(self, *ops):
        self.ops = ops

    def __call__(self, t):
        for op in self.ops:
            t = op(t)
        return t


class MaybeMirror:
    def __init__(self, dim, p=0.5):
        self.dim, self.p = dim, p

    def __call__(self, t):
        if torch.rand(1).item() < self.p:
            return t.flip(self.dim)
        return t


class MaybeQuarterTurn:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, t):
        if torch.rand(1).item() < self.p:
            return torch.rot90(t, 1, (-2, -1))
        return t
