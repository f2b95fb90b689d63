"""Modules that are read and not trained, or that an optimizer holds in another way."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


def distilled(loader, path):
    big, small = nn.Linear(8, 4), nn.Linear(8, 4)
    big.load_state_dict(torch.load(path))
    opt = torch.optim.Adam(small.parameters())
    for x in loader:
        step(F.mse_loss(small(x), big(x)), opt)


def random_target(loader):
    fixed, learned = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 8)
    fixed.requires_grad_(False)
    opt = torch.optim.Adam(learned.parameters())
    for x in loader:
        step(F.mse_loss(learned(x), fixed(x)), opt)


def bootstrapped(loader):
    online = nn.Linear(8, 8)
    target_net = copy.deepcopy(online)
    opt = torch.optim.Adam(online.parameters())
    for x in loader:
        with torch.no_grad():
            wanted = target_net(x)
        step(F.mse_loss(online(x), wanted), opt)


def adversary(loader):
    made, judge = nn.Linear(8, 8), nn.Linear(8, 1)
    opt_made, opt_judge = torch.optim.Adam(made.parameters()), torch.optim.Adam(judge.parameters())
    for x in loader:
        step(F.softplus(-judge(made(x))).mean(), opt_made)
        step((F.softplus(-judge(x)) + F.softplus(judge(made(x).detach()))).mean(), opt_judge)


def grown(loader):
    body, head = nn.Linear(8, 8), nn.Linear(8, 2)
    opt = torch.optim.SGD(body.parameters(), lr=0.1)
    opt.add_param_group({"params": head.parameters(), "lr": 1.0})
    for x, y in loader:
        step(F.cross_entropy(head(body(x)), y), opt)


def by_a_library(loader, make_optimizer):
    body, head = nn.Linear(8, 8), nn.Linear(8, 2)
    opt, other = torch.optim.SGD(head.parameters(), lr=0.1), make_optimizer(body)
    for x, y in loader:
        loss = F.cross_entropy(head(body(x)), y)
        opt.zero_grad()
        other.zero_grad()
        loss.backward()
        opt.step()
        other.step()
