"""What is kept has no graph, is bounded, begins anew, or is what is sent backward."""
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class Meter:
    def __init__(self):
        self.total, self.values, self.best = 0.0, [], None

    def update(self, value):
        self.total += value
        self.values.append(value)


def numbers(model, loader, opt):
    meter, total, first = Meter(), 0.0, []
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss.item())
        total += float(loss)
        total += loss.detach()
        with torch.no_grad():
            total += loss
        if step == 0:
            first.append(loss)
        if len(first) < 3:
            first.append(loss)


def micro_batches(model, loader, opt):
    for batch in loader:
        total, parts = 0, []
        for x, y in batch:
            loss = F.cross_entropy(model(x), y)
            total += loss
            parts.append(loss)
        opt.zero_grad()
        total.backward()
        opt.step()
        print(torch.stack(parts).mean().item())


def window(model, loader, opt):
    recent, pending = deque(maxlen=50), []
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        recent.append(loss)
        pending.append(loss)
        if len(pending) == 4:
            opt.zero_grad()
            torch.stack(pending).mean().backward()
            opt.step()
            pending = []


class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.opt = torch.optim.Adam(self.policy.parameters())
        self.log_probs, self.rewards = [], []

    def act(self, state):
        dist = torch.distributions.Categorical(logits=self.policy(state))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action

    def finish(self):
        loss = -(torch.stack(self.log_probs) * torch.tensor(self.rewards)).sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        del self.log_probs[:]
        self.rewards.clear()


def episodes(env, agent=None):
    agent = agent or Agent()
    for _ in range(100):
        state = env.reset()
        for _ in range(50):
            state, reward = env.step(agent.act(state))
            agent.rewards.append(reward)
        agent.finish()


def unrolled(cell, loss_fn, sequences, opt):
    for sequence in sequences:
        state, outputs, loss = torch.zeros(1, 8), [], 0.0
        for x in sequence:
            state = cell(x, state)
            outputs.append(state)
            loss = loss + loss_fn(state, x)
        opt.zero_grad()
        (loss + torch.stack(outputs).pow(2).mean()).backward()
        opt.step()


def folds(build, parts):
    """One network a fold, kept for an ensemble."""
    nets = []
    for part in parts:
        net = build()
        opt = torch.optim.Adam(net.parameters())
        for x, y in part:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        nets.append(net)
    return nets
