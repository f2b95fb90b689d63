"""Hooks that keep what layers give, each in a training of its own."""
from functools import partial

import torch
from torch import nn


def fit(net, opt, loader):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def net():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))


def by_partial(loader):
    model, store = net(), {"hidden": []}

    def keep(name, module, args, output):
        store[name].append(output)  # FAULT C225

    model[1].register_forward_hook(partial(keep, "hidden"))
    fit(model, torch.optim.Adam(model.parameters()), loader)


def norms(loader):
    model, means = net(), []
    model[0].register_forward_hook(lambda m, i, o: means.append(o.abs().mean()))  # FAULT C225
    fit(model, torch.optim.Adam(model.parameters()), loader)
    print(torch.stack(means))


class Recorder:
    def __init__(self):
        self.outputs = []

    def __call__(self, module, inputs, output):
        self.outputs.append(output)

    def hook(self, module, inputs, output):
        self.outputs += [output]  # FAULT C225


def object_with_a_method(loader):
    model, recorder = net(), Recorder()
    for layer in model:
        layer.register_forward_hook(recorder.hook)
    fit(model, torch.optim.Adam(model.parameters()), loader)
    return recorder


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 16), nn.Linear(16, 1)
        self.features = []
        self.body.register_forward_hook(self._note)

    def _note(self, module, args, out):
        self.features.append((out, args))  # FAULT C225

    def forward(self, x):
        return self.head(self.body(x).relu())


def of_its_own(loader):
    model = Net()
    fit(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)


SEEN = {}


def attach(model):
    def make(name):
        def hook(module, args, output):
            SEEN.setdefault(name, []).append(output)  # FAULT C225

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(make(name))


def attached(loader):
    model = net()
    attach(model)
    fit(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)


def running(loader):
    model = net()
    total = []

    def grow(module, args, output):
        half = output * 0.5
        total.append(half.mean())  # FAULT C225

    model[2].register_forward_hook(grow)
    fit(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)


def of_gradients(loader):
    model, grads = net(), []
    model[2].register_full_backward_hook(lambda m, gi, go: grads.append(go[0]))  # FAULT C225
    fit(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    return grads
