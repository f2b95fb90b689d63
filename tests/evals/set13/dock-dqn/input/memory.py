import numpy as np
import torch


class Memory:
    def __init__(self, size, obs_dim, seed):
        self.s = np.zeros((size, obs_dim), np.float32)
        self.s2 = np.zeros((size, obs_dim), np.float32)
        self.a = np.zeros(size, np.int64)
        self.r = np.zeros(size, np.float32)
        self.d = np.zeros(size, np.float32)
        self.n, self.i, self.size = 0, 0, size
        self.rng = np.random.default_rng(seed)

    def add(self, s, a, r, s2, d):
        k = self.i
        self.s[k], self.a[k], self.r[k], self.s2[k], self.d[k] = s, a, r, s2, d
        self.i = (k + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def sample(self, n):
        j = self.rng.integers(0, self.n, n)
        return tuple(torch.from_numpy(v[j]) for v in (self.s, self.a, self.r, self.s2, self.d))
