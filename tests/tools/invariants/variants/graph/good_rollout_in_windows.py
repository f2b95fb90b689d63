"""Rollout in windows."""
import torch
from torch import nn


def train(env, steps):
    pi, v = (nn.GRUCell(4, 8), nn.Linear(8, 1))
    opt = torch.optim.Adam([*pi.parameters(), *v.parameters()])
    obs = env.reset()
    hidden = torch.zeros(1, 8)
    losses = []
    for t in range(steps):
        hidden = pi(obs, hidden)
        obs, reward, done = env.step(hidden.argmax().item())
        losses.append((v(hidden) - reward) ** 2)
        if t % 20 == 19:
            opt.zero_grad()
            torch.stack(losses).mean().backward()
            opt.step()
            losses = []
            hidden = hidden.detach()
        if done:
            obs, hidden = (env.reset(), torch.zeros(1, 8))
