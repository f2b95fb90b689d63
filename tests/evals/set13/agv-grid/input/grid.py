import numpy as np

MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Floor:
    """n carts on separate 6x6 floors; each has to reach its drop point."""

    def __init__(self, n, seed, size=6, horizon=24):
        self.n, self.size, self.horizon = n, size, horizon
        self.rng = np.random.default_rng(seed)
        self.cart, self.drop = np.zeros((2, n, 2), int)
        self.t = np.zeros(n, int)
        self.blocked = np.zeros((size, size), bool)
        self.blocked[2, 1:4] = self.blocked[4, 3:6] = True
        self.reset(np.arange(n))

    def _free(self, k):
        c = np.argwhere(~self.blocked)
        return c[self.rng.integers(0, len(c), k)]

    def reset(self, who):
        self.cart[who], self.drop[who] = self._free(len(who)), self._free(len(who))
        self.t[who] = 0

    def obs(self):
        e = np.eye(self.size, dtype=np.float32)
        return np.concatenate([e[self.cart[:, 0]], e[self.cart[:, 1]], e[self.drop[:, 0]], e[self.drop[:, 1]]], 1)

    def step(self, a):
        new = np.clip(self.cart + MOVES[a], 0, self.size - 1)
        hit = self.blocked[new[:, 0], new[:, 1]]
        self.cart = np.where(hit[:, None], self.cart, new)
        self.t += 1
        there = (self.cart == self.drop).all(1)
        r = np.where(there, 1.0, -0.02).astype(np.float32)
        nxt = self.obs()                       # before any restart
        over = there | (self.t >= self.horizon)
        ret = (r, nxt, there, over)
        if over.any():
            self.reset(np.flatnonzero(over))
        return ret
