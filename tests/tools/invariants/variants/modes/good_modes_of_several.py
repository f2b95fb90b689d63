import contextlib
import torch
from torch import nn


@contextlib.contextmanager
def evaluating(*nets):
    before = [n.training for n in nets]
    for n in nets:
        n.eval()
    try:
        yield
    finally:
        for n, flag in zip(nets, before):
            n.train(flag)


def train(loader, val):
    net, head = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2)), nn.Sequential(nn.Dropout(0.1), nn.Linear(4, 1))
    frozen = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2)).eval()
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
    net.train()
    for epoch in range(4):
        for x, y in loader:
            loss = (head(net(x)) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with evaluating(net, head, frozen), torch.no_grad():
            print(sum(float((head(net(x)) - y).abs().mean()) for x, y in val))
