"""More evaluations that record graphs: generators, early stopping, a wrapped model, a test after training."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.norm(x))


def fit(net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        net.train()
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def error(net, loader):
    model = net.eval()
    total = 0.0
    for x, y in loader:
        total += F.cross_entropy(net(x), y)  # FAULT C105
    return total / len(loader), model


def early_stopping(train, held):
    net, best = Net(), 1e9
    while best > 0.1:
        fit(net, train)
        best = min(best, float(error(net, held)[0]))


class Evaluator:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader

    def __call__(self):
        self.model.eval()
        scores = {}
        for i, (x, y) in enumerate(self.loader):
            out = self.model(x)  # FAULT C105
            scores[i] = (out.argmax(1) == y).float().mean().item()
        return scores


def with_an_object(train, held):
    net = Net()
    fit(net, train)
    print(Evaluator(net, held)())


def replicated(train, test):
    net = nn.DataParallel(Net())
    fit(net, train)
    net.eval()
    hits = 0
    for x, y in test:
        hits += (net(x).argmax(1) == y).sum().item()  # FAULT C105
    print(hits)


def repeated(train, images):
    net = Net()
    fit(net, train)
    net.eval()
    views = [net(images + 0.1 * torch.randn_like(images)) for _ in range(32)]  # FAULT C105
    return torch.stack(views).mean(0)
