"""Bonuses that are subtracted, penalties that are added, objectives that are turned, soft actors, entropies to be small."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal


def logps(model, ids):
    return model(ids[:, :-1]).log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(-1)


policy = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30))
anchor = copy.deepcopy(policy).requires_grad_(False)
optimizer = torch.optim.Adam(policy.parameters())
for ids in [torch.zeros(2, 6).long()]:
    now = logps(policy, ids)
    with torch.no_grad():
        then, before = logps(anchor, ids), logps(policy, ids)
    ratio = torch.exp(now - before)
    shaped = torch.ones_like(before) - 0.1 * (before - then)
    adv = (shaped - shaped.mean()) / (shaped.std() + 1e-8)
    k3 = torch.exp(then - now) - (then - now) - 1
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() + 0.04 * k3.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

chosen, rejected = torch.zeros(2, 6).long(), torch.ones(2, 6).long()
for _ in range(2):
    with torch.no_grad():
        fixed = logps(anchor, chosen).sum(1) - logps(anchor, rejected).sum(1)
    margin = logps(policy, chosen).sum(1) - logps(policy, rejected).sum(1)
    loss = -F.logsigmoid(0.1 * (margin - fixed)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

actor, critic = nn.Linear(4, 2), nn.Linear(6, 1).requires_grad_(False)
moves = torch.optim.Adam(actor.parameters())
for s in [torch.randn(3, 4)]:
    d = Normal(actor(s), 1.0)
    a = d.rsample()
    soft = (0.2 * d.log_prob(a).sum(-1) - critic(torch.cat([s, a], -1)).squeeze(-1)).mean()
    moves.zero_grad()
    soft.backward()
    moves.step()

unlabelled = nn.Linear(4, 3)
steps = torch.optim.SGD(unlabelled.parameters(), 0.1)
for x in [torch.randn(5, 4)]:
    p = unlabelled(x).softmax(-1)
    certain = -(p * p.clamp_min(1e-8).log()).sum(-1).mean()
    average = p.mean(0)
    even = -(average * average.clamp_min(1e-8).log()).sum()
    loss = certain - 0.5 * even
    steps.zero_grad()
    loss.backward()
    steps.step()

for s, a, r in [(torch.randn(3, 4), torch.zeros(3).long(), torch.ones(3))]:
    d = Categorical(logits=unlabelled(s))
    loss = -(d.log_prob(a) * r).mean() - 0.01 * d.entropy().mean()
    steps.zero_grad()
    loss.backward()
    steps.step()
