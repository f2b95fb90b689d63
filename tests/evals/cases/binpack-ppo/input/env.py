"""Vectorised online bin packing: an item arrives, choose one of N open bins that it fits in."""
import torch


class PackEnv:
    CAP = 12

    def __init__(self, n_env, n_bins=10, horizon=40, seed=0):
        self.n, self.b, self.h = n_env, n_bins, horizon
        self.g = torch.Generator().manual_seed(seed)
        self.reset()

    def _item(self, k):
        return torch.randint(1, 9, (k,), generator=self.g)

    def reset(self):
        self.left = torch.randint(1, self.CAP + 1, (self.n, self.b), generator=self.g)
        self.left[:, 0] = self.CAP
        self.item = self._item(self.n)
        self.t = torch.zeros(self.n, dtype=torch.long)
        return self.obs(), self.valid()

    def obs(self):
        left = self.left.float() / self.CAP
        gap = (self.left - self.item[:, None]).float() / self.CAP
        return torch.cat([left, gap, (self.item.float() / self.CAP)[:, None]], 1)

    def valid(self):
        return self.left >= self.item[:, None]

    def step(self, a):
        row = torch.arange(self.n)
        rest = self.left[row, a] - self.item
        assert (rest >= 0).all()
        # wasted space if we can no longer use what remains; a full bin pays
        reward = torch.where(rest == 0, 1.0, -rest.float() / self.CAP * 0.5)
        self.left[row, a] = torch.where(rest <= 1, torch.randint(1, self.CAP + 1, (self.n,), generator=self.g), rest)
        self.item = self._item(self.n)
        stuck = ~self.valid().any(1)
        worst = self.left.argmin(1)
        self.left[row[stuck], worst[stuck]] = self.CAP
        self.t += 1
        done = self.t >= self.h
        if done.any():
            k = int(done.sum())
            fresh = torch.randint(1, self.CAP + 1, (k, self.b), generator=self.g)
            fresh[:, 0] = self.CAP
            self.left[done] = fresh
            self.t[done] = 0
        return self.obs(), self.valid(), reward, done.float()
