import copy

import torch
from torch import nn


class Agent:
    def __init__(self, n_obs, n_act, lr=2e-3, gamma=0.97, sync=100):
        self.q = nn.Sequential(nn.Linear(n_obs, 48), nn.ReLU(), nn.Linear(48, n_act))
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.gamma, self.sync, self.updates = gamma, sync, 0

    @torch.no_grad()
    def greedy(self, obs):
        return int(self.q(torch.from_numpy(obs)).argmax())

    def learn(self, obs, act, rew, nxt, mask):
        with torch.no_grad():
            best = self.q(nxt).argmax(1, keepdim=True)
            backup = rew + self.gamma * mask * self.target(nxt).gather(1, best).squeeze(1)
        value = self.q(obs).gather(1, act[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, backup)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % self.sync == 0:
            self.target.load_state_dict(self.q.state_dict())
        return loss.item(), value.mean().item(), value.max().item()
