"""The target first, the model's output second, each in a training of its own."""
import torch
import torch.nn.functional as F
from torch import nn


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


def functional(rows):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in torch.utils.data.DataLoader(rows, 32):
        step(F.binary_cross_entropy_with_logits(y, net(x)), opt)  # FAULT C236


def unknown_network(model, loader, device):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        out = model(batch["x"].to(device))
        loss = F.cross_entropy(batch["y"].to(device).float(), out)  # FAULT C236
        step(loss, opt)


def in_a_method(loader):
    class Job:
        def __init__(self):
            self.net, self.criterion = Net(), nn.BCELoss()
            self.opt = torch.optim.Adam(self.net.parameters())

        def run(self):
            for x, y in loader:
                p = torch.sigmoid(self.net(x))
                step(self.criterion(y.float(), p), self.opt)  # FAULT C236

    Job().run()


def by_keywords(loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        logits = net(x)
        loss = F.multilabel_soft_margin_loss(target=logits, input=y)  # FAULT C236
        step(loss, opt)


def of_ones():
    judge, made = nn.Linear(8, 1), nn.Linear(2, 8)
    opt = torch.optim.Adam([*judge.parameters(), *made.parameters()])
    for _ in range(100):
        real = torch.ones(16, 1)
        loss = F.binary_cross_entropy(real, torch.sigmoid(judge(made(torch.randn(16, 2)))))  # FAULT C236
        step(loss, opt)


def counts(loader):
    net = nn.Linear(8, 1)
    opt, loss_fn = torch.optim.Adam(net.parameters()), nn.PoissonNLLLoss()
    for x, y in loader:
        step(loss_fn(y, net(x).squeeze(1)), opt)  # FAULT C236


def signs(loader):
    net = nn.Linear(8, 1)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        score = net(x)[:, 0]
        step(F.soft_margin_loss(2 * y - 1, score), opt)  # FAULT C236


def helper(criterion, output, target):
    return criterion(target, output)  # FAULT C236


def by_a_helper(loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(helper(nn.CrossEntropyLoss(), net(x), y.float()), opt)
