"""Sums, lists and records of losses, each in a training of its own."""
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


def plus_equals_a_list(model, loader, opt):
    seen = []
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += [loss]  # FAULT C103
    return torch.stack(seen).mean()


def written_out(model, loader, opt):
    mean = torch.zeros(())
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        mean = mean + loss / len(loader)  # FAULT C103
        if step % 10 == 0:
            print(mean.item())


def by_name(loader):
    net = nn.Linear(4, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    curves = {"total": [], "penalty": []}
    for x in loader:
        out = net(x)
        fit, penalty = F.mse_loss(out, x), out.abs().mean()
        total = fit + 0.1 * penalty
        opt.zero_grad()
        total.backward()
        opt.step()
        curves["total"].append(total)  # FAULT C103
        curves["penalty"].append(penalty)  # FAULT C103
    return curves


def without_a_bound(loader):
    net, recent = nn.Linear(4, 4), deque()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = F.mse_loss(net(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append((len(recent), loss))  # FAULT C103


def closure(model, loader, opt):
    total = 0

    def step(x, y):
        nonlocal total
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss  # FAULT C103

    for x, y in loader:
        step(x, y)
    return total


def with_a_scaler(model, loader, opt):
    scaler, losses = torch.cuda.amp.GradScaler(), []
    for epoch in range(3):
        for x, y in loader:
            with torch.autocast("cuda"):
                loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            losses.append(loss)  # FAULT C103
        print(epoch, sum(losses).item() / len(losses))


def reset_once_an_epoch(model, loader, opt):
    for _ in range(5):
        losses = []
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.insert(0, loss)  # FAULT C103


def made_where_it_is_needed(model, loader, opt):
    log = {}
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.setdefault("loss", []).append(loss)  # FAULT C103
    return log


class Average:
    def __init__(self):
        self.reset()

    def reset(self):
        self.value, self.average, self.count = 0, 0, 0
        self.sum = 0

    def update(self, value, n=1):
        self.value = value
        self.sum += value * n  # FAULT C103
        self.count += n
        self.average = self.sum / self.count


def averaged(loader, epochs):
    net = nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        average = Average()
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(loss, len(x))
