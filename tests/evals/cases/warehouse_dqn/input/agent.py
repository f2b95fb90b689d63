import copy
import random
from collections import deque

import numpy as np
import torch
from torch import nn


class Replay:
    def __init__(self, capacity, seed):
        self.items = deque(maxlen=capacity)
        self.rnd = random.Random(seed)

    def push(self, obs, action, reward, next_obs, terminal):
        self.items.append((obs, action, reward, next_obs, terminal))

    def draw(self, n):
        o, a, r, o2, d = zip(*self.rnd.sample(self.items, n))
        return (torch.from_numpy(np.stack(o)), torch.tensor(a), torch.tensor(r, dtype=torch.float32),
                torch.from_numpy(np.stack(o2)), torch.tensor(d, dtype=torch.float32))

    def __len__(self):
        return len(self.items)


class DoubleDQN:
    def __init__(self, obs_dim, n_actions, lr=1e-3, gamma=0.95, seed=0):
        torch.manual_seed(seed)
        self.q = nn.Sequential(nn.Linear(obs_dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                               nn.Linear(64, n_actions))
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.gamma, self.n_actions = gamma, n_actions
        self.rng = np.random.default_rng(seed)

    @torch.no_grad()
    def act(self, obs, eps):
        if self.rng.random() < eps:
            return int(self.rng.integers(self.n_actions))
        return int(self.q(torch.from_numpy(obs)).argmax())

    def learn(self, batch):
        obs, act, rew, nxt, term = batch
        q = self.q(obs).gather(1, act[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.q(nxt).argmax(1, keepdim=True)
            boot = self.target(nxt).gather(1, best).squeeze(1)
            goal = rew + self.gamma * (1 - term) * boot
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 10.0)
        self.opt.step()
        return loss.item(), q.mean().item()

    def sync(self):
        self.target.load_state_dict(self.q.state_dict())
