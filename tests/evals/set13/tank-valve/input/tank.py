"""Water tank: hold the level at the set point by moving the inlet valve."""
import numpy as np


class Tank:
    n_obs, n_actions = 3, 3

    def __init__(self, seed, horizon=60):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon

    def _write(self):
        self._obs[0] = self.level - self.target
        self._obs[1] = self.valve - 0.5
        self._obs[2] = self.target - 0.5
        return self._obs

    def reset(self):
        self._obs = np.zeros(self.n_obs, dtype=np.float32)
        self.level, self.target = self.rng.uniform(0.1, 0.9, 2)
        self.valve, self.t = 0.5, 0
        self._write()
        return self._obs

    def step(self, action):
        self.valve = float(np.clip(self.valve + 0.15 * (action - 1), 0, 1))
        inflow = 0.12 * self.valve - 0.08 * np.sqrt(self.level) + self.rng.normal(0, 0.002)
        self.level = float(np.clip(self.level + inflow, 0, 1))
        self.t += 1
        self._write()
        reward = 1.0 - 4.0 * abs(self.level - self.target)
        return self._obs, reward, self.t >= self.horizon
