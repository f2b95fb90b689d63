"""More memories that keep graphs: an agent's buffer, a bank of features, recurrent states, a dataclass."""
from collections import deque
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


class Agent:
    def __init__(self, size=100_000):
        self.q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
        self.opt = torch.optim.Adam(self.q.parameters())
        self.buffer = deque(maxlen=size)

    def act(self, state):
        values = self.q(state)
        return values.argmax(), values

    def observe(self, state, values, reward):
        self.buffer.append((state, values, reward))  # FAULT C295


def play(env, steps):
    agent = Agent()
    state = env.reset()
    for _ in range(steps):
        action, values = agent.act(state)
        state, reward = env.step(action)
        agent.observe(state, values, reward)


def bank_of_features(loader):
    """Features of past batches, kept in a list that only grows."""
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    opt, bank = torch.optim.SGD(net.parameters(), lr=0.1), []
    head = nn.Linear(4, 3)
    for x, other, y in loader:
        loss = F.cross_entropy(head(net(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank.append(net(other))  # FAULT C295


def recurrent(env, steps):
    cell = nn.GRUCell(4, 16)
    memory, state = deque(maxlen=10_000), torch.zeros(1, 16)
    for _ in range(steps):
        state = cell(env.observe(), state)
        memory.append(state)  # FAULT C295


@dataclass
class Row:
    state: torch.Tensor
    value: torch.Tensor


def rows(env):
    critic, memory = nn.Linear(4, 1), deque(maxlen=65_536)
    for _ in range(1_000_000):
        state = env.observe()
        memory.append(Row(state, critic(state)))  # FAULT C295
