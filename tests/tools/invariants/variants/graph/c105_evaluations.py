"""Evaluations that record graphs, of one model each."""
import torch
import torch.nn.functional as F
from torch import nn


def make():
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    return net, torch.optim.Adam(net.parameters())


def step(net, opt, x, y):
    net.train()
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()


def accuracy(net, loader):
    net.eval()
    hits = 0
    for x, y in loader:
        hits += (net(x).argmax(-1) == y).sum().item()  # FAULT C105
    return hits


def first(train, held):
    net, opt = make()
    for x, y in train:
        step(net, opt, x, y)
    print(accuracy(net, held))


def mean_loss(net, loader):
    net.train(False)
    losses = []
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        losses.append(loss)  # FAULT C105
    return torch.stack(losses).mean()


def second(train, held):
    net, opt = make()
    for _ in range(10):
        for x, y in train:
            step(net, opt, x, y)
        print(mean_loss(net, held))


def inline(train, held):
    net, opt = make()
    for _ in range(10):
        net.train()
        for x, y in train:
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
        net.eval()
        for x, y in held:
            print(F.cross_entropy(net(x), y).item())  # FAULT C105


class Runner:
    def __init__(self):
        self.net, self.opt = make()

    def validate(self, loader):
        self.net.eval()
        outputs = []
        for x, _ in loader:
            outputs.append(self.net(x))  # FAULT C105
        return torch.cat(outputs)

    def run(self, train, held):
        for x, y in train:
            step(self.net, self.opt, x, y)
        return self.validate(held)


def third(train, held):
    return Runner().run(train, held)


def predict(net, loader):
    return [net(x).softmax(-1) for x, _ in loader]


def fourth(train, held):
    net, opt = make()
    for x, y in train:
        step(net, opt, x, y)
    net.eval()
    return predict(net, held)
