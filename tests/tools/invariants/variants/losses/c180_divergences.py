"""Targets of kl_div that are logarithms, and a divergence that is the wrong way round."""
import torch
import torch.nn.functional as F
from torch import nn


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


def both_logs(loader, teacher):
    net, loss_fn = nn.Linear(8, 4), nn.KLDivLoss(reduction="batchmean")
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        with torch.no_grad():
            wanted = teacher(x).log_softmax(-1)
        step(loss_fn(F.log_softmax(net(x), -1), wanted), opt)  # FAULT C180


def by_name(loader, teacher):
    net = nn.Linear(8, 4)
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        target = F.log_softmax(teacher(x).detach() / 2, dim=1)
        loss = F.kl_div(input=F.log_softmax(net(x) / 2, dim=1), target=target, log_target=False)  # FAULT C180
        step(loss, opt)


class Distiller:
    def __init__(self, teacher):
        self.teacher, self.student = teacher, nn.Linear(8, 4)
        self.log = nn.LogSoftmax(dim=-1)
        self.opt = torch.optim.Adam(self.student.parameters())

    def loss(self, x):
        return F.kl_div(self.log(self.student(x)), self.log(self.teacher(x)), reduction="sum")  # FAULT C180

    def fit(self, loader):
        for x in loader:
            step(self.loss(x), self.opt)


def trained(loader, teacher):
    Distiller(teacher).fit(loader)


def reverse(loader):
    net, prior = nn.Linear(8, 4), nn.Linear(8, 4)
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        with torch.no_grad():
            fixed = F.log_softmax(prior(x), -1)
        step(F.kl_div(fixed, F.softmax(net(x), -1), reduction="batchmean"), opt)  # FAULT C180


def symmetric(loader):
    net, other = nn.Linear(8, 4), nn.Linear(8, 4)
    opt = torch.optim.Adam([*net.parameters(), *other.parameters()])
    for x in loader:
        one, two = F.log_softmax(net(x), -1), F.log_softmax(other(x), -1)
        loss = F.kl_div(one, two, reduction="batchmean")  # FAULT C180
        step(loss, opt)


def of_distributions(loader):
    net, prior = nn.Linear(8, 4), torch.full((4,), 0.25)
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        q = net(x).softmax(-1)
        step(F.kl_div(prior.log(), q, reduction="sum"), opt)  # FAULT C180


def in_a_module(loader):
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.divergence = nn.KLDivLoss(reduction="batchmean")

        def forward(self, student, teacher):
            one = F.log_softmax(student, dim=-1)
            two = F.log_softmax(teacher, dim=-1)
            return self.divergence(one, two)  # FAULT C180

    net, fixed, criterion = nn.Linear(8, 4), nn.Linear(8, 4), Loss()
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        with torch.no_grad():
            wanted = fixed(x)
        step(criterion(net(x), wanted), opt)


def at_a_temperature(loader, teacher, temperature=4.0):
    net = nn.Linear(8, 4)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        soft = F.kl_div(torch.log_softmax(net(x) / temperature, 1), torch.log_softmax(teacher(x) / temperature, 1))  # FAULT C180
        step(F.cross_entropy(net(x), y) + soft, opt)
