"""Losses that are fed values of another kind, each in a training of its own."""
import torch
import torch.nn.functional as F
from torch import nn


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


class Scorer(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.GELU())
        self.out, self.squash = nn.Linear(64, classes), nn.Softmax(dim=-1)

    def forward(self, x):
        return self.squash(self.out(self.body(x)))  # FAULT C102


def layer_in_forward(loader):
    net, criterion = Scorer(5), nn.CrossEntropyLoss(label_smoothing=0.1)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        step(criterion(net(x), y), opt)


def two_steps(loader):
    net = nn.Linear(20, 1)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        shares = torch.sigmoid(net(x)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(shares, y)  # FAULT C102
        step(loss, opt)


def raw_into_nll(loader):
    net = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 4))
    opt, loss_fn = torch.optim.Adam(net.parameters()), nn.NLLLoss()
    for x, y in loader:
        step(loss_fn(net(x), y), opt)  # FAULT C102


def probabilities_into_nll(loader):
    net = nn.Linear(20, 4)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        p = F.softmax(net(x), dim=1)
        step(F.nll_loss(p, y), opt)  # FAULT C102


def raw_into_bce(loader):
    net = nn.Linear(20, 3)
    opt, loss_fn = torch.optim.Adam(net.parameters()), nn.BCELoss()
    for x, y in loader:
        step(loss_fn(input=net(x), target=y), opt)  # FAULT C102


def in_a_dict(loader):
    net = nn.Linear(20, 4)
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        out = {"p": net(x).softmax(-1)}
        loss = F.cross_entropy(out["p"], y, ignore_index=-1)  # FAULT C102
        step(loss, opt)


def raw_into_ctc(loader):
    net, rnn = nn.Linear(32, 28), nn.GRU(80, 32)
    opt = torch.optim.Adam([*net.parameters(), *rnn.parameters()])
    for x, y, x_lengths, y_lengths in loader:
        h, _ = rnn(x)
        step(F.ctc_loss(net(h), y, x_lengths, y_lengths), opt)  # FAULT C102


def raw_into_divergence(loader, teacher):
    net = nn.Linear(20, 4)
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        with torch.no_grad():
            wanted = torch.softmax(teacher(x), -1)
        loss = F.kl_div(net(x), wanted, reduction="batchmean")  # FAULT C102
        step(loss, opt)
