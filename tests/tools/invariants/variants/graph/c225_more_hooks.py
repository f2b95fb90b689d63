"""More hooks that keep: over a dict of lists, by a decorator-like factory, of inputs, in a sum."""
from collections import defaultdict

import torch
from torch import nn


def fit(net, loader):
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def by_layer(loader):
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    seen = defaultdict(list)

    def watch(name):
        def hook(module, inputs, output):
            seen[name].append(output)  # FAULT C225

        return hook

    for name, module in net.named_children():
        module.register_forward_hook(watch(name))
    fit(net, loader)
    return seen


class Monitor:
    def __init__(self, net, names):
        self.outputs = {name: [] for name in names}
        for name, module in net.named_modules():
            if name in names:
                module.register_forward_hook(lambda m, i, o, name=name: self.note(name, o))

    def note(self, name, output):
        value = output.flatten(1).std(0)
        self.outputs[name].append(value)  # FAULT C225


def monitored(loader):
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    monitor = Monitor(net, ["0", "1"])
    fit(net, loader)
    return monitor


def pairs(net, loader):
    history = []

    def keep(module, args, output):
        history.append((len(history), output))  # FAULT C225

    net.layer4.register_forward_hook(keep)
    fit(net, loader)


def the_whole_model(net, loader):
    outs = []
    net.register_forward_hook(lambda module, args, out: outs.extend([out, out.mean()]))  # FAULT C225
    fit(net, loader)
