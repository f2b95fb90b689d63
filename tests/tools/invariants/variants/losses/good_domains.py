"""Losses that get what they take."""
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
        self.body, self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.body(x))

    @torch.no_grad()
    def predict(self, x):
        return self(x).softmax(-1)


def train(loader, teacher, divergence=None):
    net = Net()
    divergence = divergence or nn.KLDivLoss(reduction="batchmean", log_target=True)
    opt = torch.optim.Adam(net.parameters())
    for x, y, many in loader:
        logits = net(x)
        loss = F.cross_entropy(logits, y) + F.nll_loss(F.log_softmax(logits, -1), y)
        loss = loss + F.binary_cross_entropy_with_logits(logits, many)
        loss = loss + F.binary_cross_entropy(torch.sigmoid(logits), many)
        loss = loss + F.cross_entropy(logits, F.softmax(teacher(x), -1).detach())
        loss = loss + F.kl_div(F.log_softmax(logits, -1), F.softmax(teacher(x), -1), reduction="batchmean")
        loss = loss + divergence(F.log_softmax(logits, -1), F.log_softmax(teacher(x), -1))
        loss = loss + F.cross_entropy(30 * torch.tanh(logits / 30), y)
        loss = loss + F.mse_loss(logits.relu(), many) + F.poisson_nll_loss(logits, many)
        step(loss, opt)
        print(net.predict(x).argmax(-1), logits.softmax(-1).max())


def switched(net, x, wanted, is_log):
    return F.kl_div(net(x).log_softmax(-1), F.log_softmax(wanted, -1), log_target=is_log)


def counted(loader):
    net = nn.Linear(8, 1)
    opt = torch.optim.Adam(net.parameters())
    for x, counts in loader:
        step(F.poisson_nll_loss(net(x).squeeze(1), counts, log_input=True), opt)
        step(F.soft_margin_loss(net(x), 2 * counts - 1), opt)
