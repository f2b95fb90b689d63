"""The loss of a policy reaches it through the sample and the log-probability of its distribution."""
import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.body = nn.Linear(states, 64)
        self.mean, self.log_std = nn.Linear(64, actions), nn.Linear(64, actions)

    def act(self, x):
        h = torch.relu(self.body(x))
        chances = Normal(self.mean(h), self.log_std(h).clamp(-5, 2).exp())
        drawn = chances.rsample()
        return torch.tanh(drawn), chances.log_prob(drawn).sum(1, keepdim=True)


class Critic(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states + actions, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, a):
        return self.net(torch.cat([x, a], 1))


def train(memory, steps, warmth=0.2):
    policy, critic = Policy(8, 2), Critic(8, 2)
    of_policy = torch.optim.Adam(list(policy.parameters()), lr=3e-4)
    of_critic = torch.optim.Adam(list(critic.parameters()), lr=3e-4)
    log_warmth = torch.zeros(1, requires_grad=True)
    of_warmth = torch.optim.Adam([log_warmth], lr=3e-4)
    for step in range(steps):
        states, actions, targets = memory.sample(256)
        loss = (critic(states, actions) - targets).square().mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        if step % 2 == 0:
            acted, chance = policy.act(states)
            wanted = (warmth * chance - critic(states, acted)).mean()
            of_policy.zero_grad()
            wanted.backward()
            of_policy.step()
            with torch.no_grad():
                _, chance = policy.act(states)
            balance = (-log_warmth * (chance - 2.0)).mean()
            of_warmth.zero_grad()
            balance.backward()
            of_warmth.step()
            warmth = log_warmth.exp().item()
