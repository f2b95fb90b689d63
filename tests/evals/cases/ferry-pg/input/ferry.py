"""A ferry between two piers, many copies at once.  Left pier is near and pays little, right pier is far and pays well."""
import torch

POSITIONS, LIMIT = 9, 40


class Ferries:
    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.pos = torch.full((self.n,), 3)
        self.done = torch.zeros(self.n, dtype=torch.bool)
        return self.observe()

    def observe(self):
        return torch.nn.functional.one_hot(self.pos, POSITIONS).float()

    def step(self, action):
        drift = (torch.rand(self.n, generator=self.gen) < 0.05).long()
        move = (action * 2 - 1) * (1 - 2 * drift)
        alive = ~self.done
        self.pos = torch.where(alive, (self.pos + move).clamp(0, POSITIONS - 1), self.pos)
        reward = torch.where(alive, torch.full((self.n,), -0.02), torch.zeros(self.n))
        reward += torch.where(alive & (self.pos == 0), 0.2, 0.0)
        reward += torch.where(alive & (self.pos == POSITIONS - 1), 2.0, 0.0)
        self.done = self.done | (self.pos == 0) | (self.pos == POSITIONS - 1)
        return self.observe(), reward, self.done.clone()
