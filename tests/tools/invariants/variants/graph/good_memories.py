"""Memories of cut outputs, rollouts that are learned from, and outputs of an evaluation."""
from collections import deque

import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)

    def forward(self, x):
        return self.net(x)

    @torch.no_grad()
    def act(self, x):
        return self.net(x)


def replay(env):
    actor, memory = Actor(), deque(maxlen=100_000)
    for _ in range(1_000_000):
        state = env.observe()
        memory.append((state, actor.act(state)))
        memory.append((state, actor(state).detach()))
        memory.append((state, actor(state).argmax(-1)))
        with torch.inference_mode():
            memory.append((state, actor(state)))


def rollout(env, actor):
    outputs = []
    for _ in range(128):
        outputs.append(actor(env.observe()))
    return torch.stack(outputs)


def learn(env):
    actor = Actor()
    opt = torch.optim.Adam(actor.parameters())
    for _ in range(100):
        loss = rollout(env, actor).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
