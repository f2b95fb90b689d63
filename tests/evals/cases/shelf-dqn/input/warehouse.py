import numpy as np


class Aisle:
    """A picker walks an aisle of bays; only the last bay holds the ordered item."""

    ACTIONS = ("back", "forward", "scan")

    def __init__(self, bays=8, limit=40, seed=0):
        self.bays, self.limit = bays, limit
        self.rng = np.random.default_rng(seed)

    def _obs(self):
        o = np.zeros(self.bays, np.float32)
        o[self.at] = 1
        return o

    def reset(self):
        self.at, self.t = 0, 0
        return self._obs()

    def step(self, action):
        self.t += 1
        reward, done = -0.01, False
        if action == 2:
            reward = -0.05
            if self.at == self.bays - 1:
                reward, done = 1.0, True
        elif self.rng.random() > 0.05:
            self.at = int(np.clip(self.at + (1 if action == 1 else -1), 0, self.bays - 1))
        return self._obs(), reward, done, self.t >= self.limit
