import numpy as np
import torch


class Replay:
    def __init__(self, n_obs, size=5000):
        self.size, self.n, self.ptr = size, 0, 0
        self.obs = np.zeros((size, n_obs), np.float32)
        self.nxt = np.zeros((size, n_obs), np.float32)
        self.act = np.zeros(size, np.int64)
        self.rew = np.zeros(size, np.float32)
        self.mask = np.zeros(size, np.float32)

    def push(self, obs, act, rew, nxt, done):
        i = self.ptr
        self.obs[i], self.act[i], self.rew[i], self.nxt[i], self.mask[i] = obs, act, rew, nxt, float(done)
        self.ptr = (i + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def sample(self, k, rng):
        j = rng.integers(0, self.n, k)
        return [torch.from_numpy(a[j]) for a in (self.obs, self.act, self.rew, self.nxt, self.mask)]
