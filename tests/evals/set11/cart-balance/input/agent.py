import copy

import numpy as np
import torch
from torch import nn


def q_network(n_obs, n_act, hidden):
    return nn.Sequential(nn.Linear(n_obs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_act))


class Replay:
    def __init__(self, size, n_obs, rng):
        self.obs = np.zeros((size, n_obs), np.float32)
        self.nxt = np.zeros((size, n_obs), np.float32)
        self.act = np.zeros(size, np.int64)
        self.rew = np.zeros(size, np.float32)
        self.end = np.zeros(size, np.float32)
        self.size, self.n, self.at, self.rng = size, 0, 0, rng

    def add(self, o, a, r, o2, end):
        i = self.at
        self.obs[i], self.act[i], self.rew[i], self.nxt[i], self.end[i] = o, a, r, o2, end
        self.at = (i + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def batch(self, k):
        i = self.rng.integers(0, self.n, k)
        return [torch.from_numpy(v[i]) for v in (self.obs, self.act, self.rew, self.nxt, self.end)]


class Agent:
    def __init__(self, n_obs, n_act, cfg):
        self.cfg = cfg
        self.online = q_network(n_obs, n_act, cfg["hidden"])
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=cfg["lr"])
        self.updates = 0

    @torch.no_grad()
    def act(self, obs):
        return int(self.online(torch.as_tensor(obs, dtype=torch.float32)).argmax())

    def sync(self):
        self.target.load_state_dict(self.online.state_dict(), assign=True)

    def update(self, batch):
        o, a, r, o2, end = batch
        with torch.no_grad():
            boot = self.target(o2).max(1).values
            y = r + self.cfg["gamma"] * (1 - end) * boot
        q = self.online(o).gather(1, a[:, None])[:, 0]
        loss = nn.functional.mse_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % self.cfg["sync_every"] == 0:
            self.sync()
        return loss.item(), q.mean().item()
