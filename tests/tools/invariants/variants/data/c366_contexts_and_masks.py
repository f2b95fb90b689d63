"""Contexts that are only made, and a bound that is set within one that is entered."""

import torch
from torch import nn


@torch.no_grad()
def told(net, x):
    return net(x).argmax(1)


def evaluate(net, loader):
    net.eval()
    found = []
    torch.inference_mode()  # FAULT C366
    for x, y in loader:
        with torch.no_grad():
            scores = net(x).softmax(1)
            scores.clamp(1e-6, 1.0)  # FAULT C366
            found.append(-scores.log().gather(1, y[:, None]).mean().item())
    return sum(found) / len(found)


def train(net, loader, held):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        net.train()
        for x, y in loader:
            torch.autocast("cpu", dtype=torch.bfloat16)  # FAULT C366
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(evaluate(net, held))
