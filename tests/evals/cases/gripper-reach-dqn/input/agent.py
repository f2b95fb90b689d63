import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn


class Memory:
    def __init__(self, size, seed):
        self.items = deque(maxlen=size)
        self.rng = random.Random(seed)

    def push(self, *transition):
        self.items.append(transition)

    def sample(self, k):
        s, a, r, s2, term = zip(*self.rng.sample(self.items, k))
        return (torch.from_numpy(np.stack(s)), torch.tensor(a), torch.tensor(r, dtype=torch.float32),
                torch.from_numpy(np.stack(s2)), torch.tensor(term, dtype=torch.float32))

    def __len__(self):
        return len(self.items)


class DoubleQ:
    def __init__(self, lr=1e-3, gamma=0.95):
        def make():
            return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

        self.online, self.target = make(), make()
        self.target.load_state_dict(self.online.state_dict())
        self.opt = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma = gamma

    @torch.no_grad()
    def act(self, s):
        return int(self.online(torch.from_numpy(s)).argmax())

    def learn(self, batch):
        s, a, r, s2, term = batch
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + self.gamma * (1 - term) * self.target(s2).gather(1, best).squeeze(1)
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.opt.step()
        with torch.no_grad():
            for p, t in zip(self.online.parameters(), self.target.parameters()):
                t.lerp_(p, 0.01)
        return loss.item(), q.mean().item()
