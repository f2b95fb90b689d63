"""A teacher that is trained before is in no file; what a switch restores is not followed; plain SGD has no state."""
import os

import torch
from torch import nn

MODE = "scratch"


def mlp(width):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 2))


def teach(batches):
    teacher = mlp(64)
    opt = torch.optim.AdamW(teacher.parameters(), lr=1e-3)
    for x, y in batches:
        cost = nn.functional.cross_entropy(teacher(x), y)
        opt.zero_grad()
        cost.backward()
        opt.step()
    return teacher.eval().requires_grad_(False)


def learn(teacher, batches, path):
    net, first = mlp(8), 0
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if os.path.exists(path):
        kept = torch.load(path)
        net.load_state_dict(kept["net"])
        opt.load_state_dict(kept["opt"])
        first = kept["epoch"] + 1
    for epoch in range(first, 20):
        for x, _ in batches:
            with torch.no_grad():
                wanted = teacher(x).softmax(1)
            cost = nn.functional.cross_entropy(net(x), wanted)
            opt.zero_grad()
            cost.backward()
            opt.step()
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)


def by_switch(batches, path):
    net, step = mlp(8), 0
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    if MODE == "resume":
        kept = torch.load(path)
        net.load_state_dict(kept["net"])
        opt.load_state_dict(kept["opt"])
        step = kept["step"]
    while step < 1000:
        for x, y in batches:
            cost = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            cost.backward()
            opt.step()
            step += 1
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, path)


def sample(path, x):
    kept = torch.load(path)
    net = mlp(8)
    net.load_state_dict(kept["net"])
    print("of step", kept["step"])
    return net.eval()(x)


def plain(batches, path):
    net, first = mlp(8), 0
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if os.path.exists(path):
        kept = torch.load(path)
        net.load_state_dict(kept["net"])
        first = kept["epoch"] + 1
    for epoch in range(first, 20):
        for x, y in batches:
            cost = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            cost.backward()
            opt.step()
        torch.save({"net": net.state_dict(), "epoch": epoch}, path)
