"""Warm up in batches."""
import torch


def main(model, loader, crit, epochs=30):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    warm = len(loader) * 3
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1.0, i / warm))
    main_sched = torch.optim.lr_scheduler.StepLR(opt, 10)
    for e in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            crit(model(x), y).backward()
            opt.step()
            if e < 3:
                sched.step()
        main_sched.step()
