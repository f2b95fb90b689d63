"""The optimizer of which the state was loaded is not the one that steps; an average and a count are in no file."""
import copy

import torch
from torch import nn


def optimizer_of(net, rate):
    return torch.optim.AdamW(net.parameters(), lr=rate)


def run(batches, path, rate=1e-3):
    net = nn.Linear(8, 1)
    opt = optimizer_of(net, rate)
    kept = torch.load(path)
    net.load_state_dict(kept["net"])
    opt.load_state_dict(kept["opt"])
    begun = kept["turn"]
    opt = optimizer_of(net, rate)  # FAULT C354
    for turn in range(begun, 100):
        for x, y in batches:
            cost = (net(x) - y).pow(2).mean()
            opt.zero_grad()
            cost.backward()
            opt.step()
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "turn": turn + 1}, path)


class Player:
    def __init__(self, rate=1e-3):
        self.values = nn.Linear(4, 2)
        self.slow = copy.deepcopy(self.values)
        self.opt = torch.optim.Adam(self.values.parameters(), lr=rate)
        self.frames, self.half = 0, 10_000

    def chance(self):
        return 0.5 ** (self.frames / self.half)

    def step(self, o, r):
        self.frames += 1
        cost = (self.values(o).mean(1) - r).pow(2).mean() * (1 - self.chance())
        self.opt.zero_grad()
        cost.backward()
        self.opt.step()

    def write(self, path, game):
        torch.save({"values": self.values.state_dict(), "opt": self.opt.state_dict(), "game": game}, path)  # FAULT C205

    def read(self, path):
        kept = torch.load(path)
        self.values.load_state_dict(kept["values"])
        self.opt.load_state_dict(kept["opt"])
        return kept["game"]
