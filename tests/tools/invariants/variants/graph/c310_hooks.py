"""Hooks registered over and over, each in a training of its own."""
import torch
from torch import nn


def note(module, args, output):
    print(output.shape)


def update(net, opt, x, y):
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


def each_step(net, opt, loader):
    for x, y in loader:
        net.register_forward_pre_hook(lambda m, args: args)  # FAULT C310
        update(net, opt, x, y)


def each_epoch(opt, loader):
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    for _ in range(30):
        net[0].register_forward_hook(note)  # FAULT C310
        for x, y in loader:
            update(net, opt, x, y)


def each_window(net, opt, loader):
    for step, (x, y) in enumerate(loader):
        if step % 100 == 0:
            net.encoder.register_full_backward_hook(note)  # FAULT C310
        update(net, opt, x, y)


def of_parameters(net, opt, loader):
    for x, y in loader:
        for name, p in net.named_parameters():
            if p.requires_grad:
                p.register_hook(lambda g: g.clamp(-1, 1))  # FAULT C310
        update(net, opt, x, y)


def watch(model):
    for layer in model.modules():
        if isinstance(layer, nn.ReLU):
            layer.register_forward_hook(note)


class Loop:
    def __init__(self, rows):
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.rows = rows

    def epoch(self):
        watch(self.net)  # FAULT C310
        for x, y in self.rows:
            update(self.net, self.opt, x, y)

    def run(self):
        while True:
            self.epoch()


def on_the_optimizer(net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        opt.register_step_post_hook(lambda o, a, k: None)  # FAULT C310
        update(net, opt, x, y)
