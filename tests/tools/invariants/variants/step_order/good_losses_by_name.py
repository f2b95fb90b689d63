"""Losses by name."""
import torch


class Agent:

    def __init__(self, pi, v):
        self.pi, self.v = (pi, v)
        self.optims = {'pi': torch.optim.Adam(pi.parameters(), 0.0003), 'v': torch.optim.Adam(v.parameters(), 0.001)}

    def update(self, obs, act, adv, ret):
        for o in self.optims.values():
            o.zero_grad()
        losses = {'pi': -(self.pi.log_prob(obs, act) * adv).mean(), 'v': ((self.v(obs) - ret) ** 2).mean()}
        for name, loss in losses.items():
            loss.backward()
            self.optims[name].step()

    def learn(self, buffer):
        for b in buffer:
            self.update(*b)
