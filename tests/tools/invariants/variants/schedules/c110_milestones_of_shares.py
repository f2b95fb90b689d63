"""Milestones as shares of the epochs, and a step in each batch."""
import torch


def make_optim(model, n_epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    milestones = [int(n_epochs * f) for f in (0.5, 0.75)]
    return opt, torch.optim.lr_scheduler.MultiStepLR(opt, milestones=milestones, gamma=0.1)


def train_one_epoch(model, loader, opt, sched, criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()  # FAULT C110


def main(model, loader, criterion, n_epochs=90):
    opt, sched = make_optim(model, n_epochs)
    for e in range(n_epochs):
        train_one_epoch(model, loader, opt, sched, criterion)
