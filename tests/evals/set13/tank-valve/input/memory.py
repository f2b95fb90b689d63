from collections import deque

import numpy as np
import torch


class Memory:
    def __init__(self, size, seed):
        self.items = deque(maxlen=size)
        self.rng = np.random.default_rng(seed)

    def push(self, *transition):
        self.items.append(transition)

    def draw(self, n):
        pick = self.rng.integers(0, len(self.items), n)
        obs, act, rew, nxt = zip(*(self.items[i] for i in pick))
        return (torch.from_numpy(np.stack(obs)), torch.tensor(act), torch.tensor(rew, dtype=torch.float32),
                torch.from_numpy(np.stack(nxt)))
