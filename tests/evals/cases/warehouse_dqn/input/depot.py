import numpy as np

MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Depot:
    """Robot on an n x n floor has to reach the shelf with the ordered item."""

    n_actions = 4
    obs_dim = 6

    def __init__(self, n=8, limit=24, seed=0):
        self.n, self.limit = n, limit
        self.rng = np.random.default_rng(seed)
        self._obs = np.zeros(self.obs_dim, np.float32)

    def reset(self):
        self.robot = self.rng.integers(0, self.n, 2)
        self.shelf = self.rng.integers(0, self.n, 2)
        while (self.robot == self.shelf).all():
            self.shelf = self.rng.integers(0, self.n, 2)
        self.t = 0
        return self._observe()

    def _observe(self):
        self._obs[0:2] = self.robot / (self.n - 1)
        self._obs[2:4] = self.shelf / (self.n - 1)
        self._obs[4:6] = np.sign(self.shelf - self.robot)
        return self._obs

    def step(self, action):
        self.robot = np.clip(self.robot + MOVES[action], 0, self.n - 1)
        self.t += 1
        found = bool((self.robot == self.shelf).all())
        reward = 1.0 if found else -0.02
        return self._observe(), reward, found, self.t >= self.limit
