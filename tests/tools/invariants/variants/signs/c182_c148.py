import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal


def reinforce(policy, optimizer, episodes):
    for states, actions, returns in episodes:
        chances = Categorical(logits=policy(states))
        gain = chances.log_prob(actions) * returns
        optimizer.zero_grad()
        gain.mean().backward()  # FAULT C148
        optimizer.step()


def actor_critic(policy, critic, optimizer, steps, bonus=0.01):
    for s, a, r in steps:
        d = Normal(policy(s), 1.0)
        value = critic(s)
        actor = -(d.log_prob(a) * (r - value).detach()).mean()
        spread = d.entropy().sum(-1).mean()
        total = actor + F.mse_loss(value, r)
        total += bonus * spread  # FAULT C182
        optimizer.zero_grad()
        total.backward()
        optimizer.step()


def clipped(policy, optimizer, memory, eps=0.2):
    for s, a, old, adv in memory:
        new = Categorical(logits=policy(s)).log_prob(a)
        with torch.no_grad():
            before = Categorical(logits=policy(s)).log_prob(a)
        r = (before - new).exp()  # FAULT C182
        lower, upper = r * adv, torch.clamp(r, 1 - eps, 1 + eps) * adv
        loss = -torch.minimum(lower, upper).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def unbounded(policy, optimizer, memory, eps=0.2):
    for s, a, old, adv in memory:
        with torch.no_grad():
            before = Categorical(logits=policy(s)).log_prob(a)
        r = torch.exp(Categorical(logits=policy(s)).log_prob(a) - before)
        loss = torch.min(-adv * r, -adv * r.clamp(1 - eps, 1 + eps)).mean()  # FAULT C182
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def classify(net, optimizer, loader):
    for x, y in loader:
        score = -F.cross_entropy(net(x), y)  # FAULT C148
        optimizer.zero_grad()
        score.backward()
        optimizer.step()


policy, critic = nn.Linear(4, 3), nn.Linear(4, 1)
reinforce(policy, torch.optim.Adam(policy.parameters()), [])
actor_critic(policy, critic, torch.optim.Adam([*policy.parameters(), *critic.parameters()]), [])
clipped(policy, torch.optim.Adam(policy.parameters()), [])
unbounded(policy, torch.optim.Adam(policy.parameters()), [])
classify(policy, torch.optim.Adam(policy.parameters()), [])
