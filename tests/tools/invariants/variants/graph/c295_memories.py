"""Memories that keep what a network returned with its graph."""
import random
from collections import deque, namedtuple

import torch
from torch import nn

Entry = namedtuple("Entry", ["state", "value", "reward"])


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(6, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.body(x)))


class Memory:
    def __init__(self, size):
        self.rows = deque(maxlen=size)

    def push(self, *row):
        self.rows.append(row)  # FAULT C295

    def draw(self, n):
        return random.sample(self.rows, n)


def collect(env):
    critic, memory = Critic(), Memory(20_000)
    state = env.reset()
    for _ in range(100_000):
        value = critic(state)
        state, reward = env.step(value.argmax())
        memory.push(state, value, reward)
    return memory


def records(env):
    critic, memory = Critic(), deque(maxlen=int(1e5))
    while not env.done:
        state = env.observe()
        memory.append(Entry(state, critic(state), env.reward()))  # FAULT C295
    return memory


def as_a_dict(env):
    critic, memory = Critic(), deque(maxlen=50_000)
    for step in range(1_000_000):
        state = env.observe()
        memory.append({"state": state, "value": critic(state)})  # FAULT C295


def queue_of_keys(encoder, loader, loss_fn, size=65536):
    """Keys of past batches, as negatives."""
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    opt = torch.optim.SGD(net.parameters(), lr=0.03)
    keys = deque(maxlen=size)
    for x, y in loader:
        key = net(y)
        loss = loss_fn(encoder(x), list(keys))
        opt.zero_grad()
        loss.backward()
        opt.step()
        keys.append(key)  # FAULT C295
