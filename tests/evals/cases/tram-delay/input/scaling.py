import torch


class RunningScaler:
    """Mean and variance of a stream (Chan et al.), for inputs whose scale is not known in advance."""

    def __init__(self, dim):
        self.mean = torch.zeros(dim)
        self.m2 = torch.ones(dim)
        self.count = 1.0

    def update(self, x):
        n = x.shape[0]
        mean = x.mean(0)
        m2 = ((x - mean) ** 2).sum(0)
        delta = mean - self.mean
        total = self.count + n
        self.m2 = self.m2 + m2 + delta ** 2 * self.count * n / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def __call__(self, x):
        return (x - self.mean) / (self.m2 / self.count).sqrt().clamp_min(1e-6)
