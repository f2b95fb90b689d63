import numpy as np


class ReachEnv:
    """Planar gripper that has to reach a target; four unit moves, bonus on arrival."""

    MOVES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32)

    def __init__(self, seed, horizon=30):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon

    def reset(self):
        self.state = self.rng.uniform(-1, 1, size=4).astype(np.float32)
        self.clock = 0
        return self.state

    def _gap(self):
        return float(np.linalg.norm(self.state[:2] - self.state[2:]))

    def step(self, action):
        self.state[:2] += 0.15 * self.MOVES[action]
        np.clip(self.state, -1.5, 1.5, out=self.state)
        self.clock += 1
        reached = self._gap() < 0.2
        reward = 1.0 if reached else -0.02
        return self.state, reward, reached, self.clock >= self.horizon
