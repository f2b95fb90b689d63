"""What a rollout keeps: drawn actions are whole numbers, and probabilities are bounded in place before their logarithm."""
import torch
from torch import nn


class Memory:
    def __init__(self):
        self.rows = []

    def push(self, state, action, reward, chances):
        self.rows.append((state, action, reward, chances))


def train(env, steps):
    policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2), nn.Softmax(-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    memory = Memory()
    state = env.reset()
    for _ in range(steps):
        chances = policy(state)
        action = chances.multinomial(1)
        following, reward, _ = env.step(action.item())
        memory.push(state.detach(), action, float(reward), chances.detach())
        chances.data.clamp_(0.01, 0.99)
        loss = -(chances.log()[action] * reward).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = following
    return memory
