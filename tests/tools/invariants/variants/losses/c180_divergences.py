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
