import numpy as np


class TankLevel:
    """Keep the level of a leaking tank at its set point with a three-way valve."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.level = self.rng.uniform(0.1, 0.9)
        self.goal = self.rng.uniform(0.3, 0.7)
        self.flow = 0.0
        self.n = 0
        return self._see()

    def _see(self):
        return np.array([self.level, self.goal, self.level - self.goal, self.flow], dtype=np.float32)

    def step(self, valve):
        self.flow = 0.6 * self.flow + 0.4 * (valve - 1) * 0.12
        self.level += self.flow - 0.01 * self.level + self.rng.normal(0, 0.004)
        self.n += 1
        spilled = not 0.0 < self.level < 1.0
        reward = 1.0 - 4.0 * min(abs(self.level - self.goal), 0.5) if not spilled else -10.0
        return self._see(), reward, spilled, self.n >= 60
