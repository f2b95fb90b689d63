import numpy as np


class DockEnv:
    """A ferry on a line has to stop at the pier. state = (position, speed); actions: back, idle, forward."""
    n_actions = 3
    obs_dim = 2

    def __init__(self, seed, horizon=60):
        self.rng = np.random.default_rng(seed)
        self.horizon = horizon
        self.state = np.zeros(2, dtype=np.float32)

    def reset(self):
        self.t = 0
        self.state[0] = self.rng.choice([-1, 1]) * self.rng.uniform(0.4, 1.0)
        self.state[1] = self.rng.uniform(-0.05, 0.05)
        return self.state

    def step(self, a):
        self.t += 1
        self.state[1] = 0.97 * self.state[1] + 0.02 * (a - 1)
        self.state[0] += self.state[1]
        pos, vel = self.state
        docked = abs(pos) < 0.05 and abs(vel) < 0.03
        lost = abs(pos) > 1.6
        r = 1.0 if docked else (-1.0 if lost else -0.01)
        done = docked or lost
        return self.state, r, done, self.t >= self.horizon
