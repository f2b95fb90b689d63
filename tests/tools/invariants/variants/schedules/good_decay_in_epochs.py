"""Decay in epochs."""
import torch


def main(model, loader, crit, epochs=30):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    n = len(loader)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 0.97 ** (i / n))
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            crit(model(x), y).backward()
            opt.step()
            sched.step()
