"""Milestones in batches."""
import torch


def make(model, n_epochs, per_epoch):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    stones = [int(n_epochs * per_epoch * f) for f in (0.5, 0.75)]
    return (opt, torch.optim.lr_scheduler.MultiStepLR(opt, milestones=stones))


def epoch(model, loader, opt, sched, crit):
    for x, y in loader:
        opt.zero_grad()
        crit(model(x), y).backward()
        opt.step()
        sched.step()


def main(model, loader, crit, n=90):
    opt, sched = make(model, n, len(loader))
    for _ in range(n):
        epoch(model, loader, opt, sched, crit)
