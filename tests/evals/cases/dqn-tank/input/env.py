import numpy as np


class TwoTank:
    """Keep the level of the second tank near the set-point; actions: pump off / low / high."""

    n_obs, n_act = 3, 3
    FLOW = (0.0, 0.08, 0.2)

    def __init__(self, seed=0, horizon=60):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon
        self.state = np.zeros(self.n_obs, dtype=np.float32)

    def reset(self):
        self.t = 0
        self.state[:2] = self.rng.uniform(0.0, 1.0, 2)
        self.state[2] = self.rng.uniform(0.3, 0.7)
        return self.state

    def step(self, a):
        h1, h2, ref = self.state
        q = 0.35 * h1
        self.state[0] = np.clip(h1 + self.FLOW[a] - q, 0, 1.5)
        self.state[1] = np.clip(h2 + q - 0.22 * h2, 0, 1.5)
        self.t += 1
        r = 1.0 - min(abs(float(self.state[1] - ref)) * 5.0, 1.0)
        return self.state, r, self.t >= self.horizon
