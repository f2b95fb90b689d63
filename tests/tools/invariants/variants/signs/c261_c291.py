import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def logps(model, ids):
    chances = model(ids[:, :-1]).log_softmax(-1)
    return torch.gather(chances, 2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


class Tuner:
    def __init__(self, policy, beta=0.05):
        self.policy, self.beta = policy, beta
        self.anchor = copy.deepcopy(policy)
        for p in self.anchor.parameters():
            p.requires_grad = False
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), 1e-5)

    def step(self, ids, weights):
        now = logps(self.policy, ids)
        with torch.no_grad():
            then = logps(self.anchor, ids)
        away = (now - then).mean(1)  # FAULT C261
        loss = -(now.mean(1) * weights).mean() - self.beta * away.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Router(nn.Module):
    def __init__(self, width=16, experts=4):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.Parameter(torch.randn(experts, width, width))

    def forward(self, x):
        share = F.softmax(self.gate(x), dim=-1)
        used = share.mean(dim=0)
        even = -(used * torch.log(used.clamp_min(1e-8))).sum()
        return torch.einsum("be,eio,bi->bo", share, self.experts, x), even


def route(batches):
    net = Router()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in batches:
        out, even = net(x)
        loss = (out - y).pow(2).mean() + 0.01 * even  # FAULT C291
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


tuner = Tuner(nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30)))
for ids in [torch.zeros(2, 6).long()]:
    tuner.step(ids, torch.ones(2))
route([(torch.randn(4, 16), torch.randn(4, 16))])
