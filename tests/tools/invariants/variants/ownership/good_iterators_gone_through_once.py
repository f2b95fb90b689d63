"""Iterators that are made anew, kept in a list, or taken from one by one on purpose."""

import torch
from torch import nn


def main(loader, steps, plain):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    early = list(p for n, p in net.named_parameters() if n.startswith("0"))
    print(sum(p.numel() for p in early))
    for p in early:
        p.requires_grad_(False)
    late = (p for n, p in net.named_parameters() if n.startswith("2"))
    if plain:
        count = sum(p.numel() for p in late)
    else:
        count = sum(1 for _ in late)
    optimizer = torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.1)
    batches = iter(loader)
    for _ in range(steps):
        x, y = next(batches)
        pairs = zip(x, y)
        print(sum(float(a.sum()) for a, _ in pairs), count)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    words = map(str.lower, ["a", "b", "c"])
    for word in words:
        if word == "a":
            break
    for word in words:
        print(word)
