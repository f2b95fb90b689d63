"""Losses and optimizers by name, in two dicts; each optimizer steps before its loss is sent backward."""
import torch


class Agent:
    def __init__(self, policy, value):
        self.policy, self.value = policy, value
        self.optims = {"pi": torch.optim.Adam(policy.parameters(), 3e-4), "v": torch.optim.Adam(value.parameters(), 1e-3)}

    def update(self, obs, act, adv, ret):
        for o in self.optims.values():
            o.zero_grad()
        pi_loss = -(self.policy.log_prob(obs, act) * adv).mean()
        v_loss = ((self.value(obs) - ret) ** 2).mean()
        for name, loss in {"pi": pi_loss, "v": v_loss}.items():
            self.optims[name].step()  # FAULT C161
            loss.backward()

    def learn(self, buffer):
        for batch in buffer:
            self.update(*batch)
